// Keyboard: j k next and previous item, Enter opens it, n p next and previous page or episode, / search, ? help.
const items = () => [...document.querySelectorAll("[data-item]")].filter((e) => e.offsetParent);
let at = -1;

const move = (by) => {
  const list = items();
  if (!list.length) return;
  const here = list.findIndex((e) => e.dataset.here !== undefined); // what is read (episode.js)
  at = Math.max(0, Math.min(list.length - 1, (here < 0 ? at : here) + by));
  list.forEach((e, i) => e.classList.toggle("on", i === at));
  document.activeElement?.blur(); // Enter is for the marked one, no longer for what was clicked last
  list[at].scrollIntoView({ block: list[at].matches(".turn") ? "start" : "nearest" });
  list[at].dispatchEvent(new Event("chosen", { bubbles: true }));
};

document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, textarea, select, dialog") || event.ctrlKey || event.metaKey || event.altKey) return;
  const go = (selector) => document.querySelector(selector)?.click();
  switch (event.key) {
    case "/":
      event.preventDefault();
      document.querySelector("[data-search]")?.focus();
      break;
    case "?": document.getElementById("help")?.showModal(); break;
    case "j": move(1); break;
    case "k": move(-1); break;
    case "n": go("a[rel=next]"); break;
    case "p": go("a[rel=prev]"); break;
    case "Enter":
      if (!event.target.closest("a, button, summary, [tabindex]")) items()[at]?.querySelector("a")?.click();
      break;
  }
});
