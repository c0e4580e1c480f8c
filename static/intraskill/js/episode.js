// Episode pages: c compares or stops comparing; the outline marks the turn that is read: the one that was chosen
// (j, k, a link of the outline, the newest when following) until the reader scrolls on, else the one at a line
// that moves down the window as the page scrolls down, so that each turn has its time, the last ones too.
const HEADER = 64;
const nav = document.querySelector(".outline");
let chosen = null; // the turn, and where the page stood when it was
let place = 0;
let asked = false;

document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, textarea, select, dialog") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "c") document.querySelector("a[data-compare]")?.click();
});

const read = () => {
  if (chosen?.isConnected && Math.abs(scrollY - place) < 2) return chosen;
  chosen = null;
  const turns = [...document.querySelectorAll(".turn[id]")];
  const whole = document.documentElement.scrollHeight - innerHeight;
  const line = HEADER + 1 + (whole > 0 ? (innerHeight - HEADER - 2) * Math.min(1, scrollY / whole) : 0);
  return turns.findLast((turn) => turn.getBoundingClientRect().top <= line) ?? turns[0];
};
const show = (link) => { // in the outline's own box, which may scroll down or, on a narrow page, sideways
  const box = link.offsetParent && [nav, nav.querySelector("ol")].find((e) => e.scrollHeight > e.clientHeight + 1 || e.scrollWidth > e.clientWidth + 1);
  if (!box) return;
  const [a, b] = [link.getBoundingClientRect(), box.getBoundingClientRect()];
  box.scrollTop += Math.max(0, a.bottom - b.bottom) + Math.min(0, a.top - b.top);
  box.scrollLeft += Math.max(0, a.right - b.right) + Math.min(0, a.left - b.left);
};
const be = (turn) => { // keys go on from it
  document.querySelectorAll("[data-here]").forEach((e) => { if (e !== turn) delete e.dataset.here; });
  if (turn) turn.dataset.here = "";
};
const mark = () => {
  asked = false;
  const turn = read();
  be(turn);
  if (!turn) return;
  for (const link of nav.querySelectorAll("a[href^='#']")) {
    const here = link.hash.slice(1) === turn.id;
    if (here && !link.classList.contains("here")) show(link);
    link.classList.toggle("here", here);
    if (here) link.setAttribute("aria-current", "location");
    else if (link.getAttribute("aria-current") === "location") link.removeAttribute("aria-current");
  }
};
const soon = () => {
  if (asked) return;
  asked = true;
  requestAnimationFrame(mark);
};
const choose = (turn) => {
  if (!turn?.matches(".turn[id]")) return;
  be(turn); // at once: a second key may come before the page has scrolled
  requestAnimationFrame(() => { // by then the page has scrolled to it
    chosen = turn;
    place = scrollY;
    mark();
  });
};
const ofAddress = () => {
  const target = document.getElementById(location.hash.slice(1));
  choose(target?.matches(".fork") ? target.nextElementSibling : target);
};

document.addEventListener("chosen", (event) => choose(event.target));
addEventListener("hashchange", ofAddress);
addEventListener("scroll", soon, { passive: true });
addEventListener("resize", soon, { passive: true });
if (location.hash) ofAddress();
mark();
