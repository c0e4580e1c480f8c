// An episode that is still being played: asks for the turns from the last one it has, adds what is new and keeps
// to the newest until the reader scrolls away. Nothing above moves; the last turn is drawn anew only untouched.
// A page that was opened before its episode began has no turn yet and takes title, prompt and treatment too.
const state = document.getElementById("live-state");
const outline = document.getElementById("live-outline");
const turns = document.getElementById("live-turns");
const end = document.getElementById("live-end");
const button = document.getElementById("follow");
const EVERY = 1000, CALM = 5000, PATIENCE = 60;
let etag = "";
let following = !location.hash;
let quiet = 0;
let drawn = false; // our own scrolling is no reader's

const over = () => ["recorded", "stopped"].includes(state.dataset.state);
const atEnd = () => end.getBoundingClientRect().bottom <= innerHeight + 24;
const show = () => {
  button.textContent = following ? button.dataset.on : button.dataset.off;
  button.setAttribute("aria-pressed", String(following));
  button.hidden = over();
};
const toEnd = () => {
  // the outline marks what the reader is kept to (episode.js)
  turns.lastElementChild?.dispatchEvent(new Event("chosen", { bubbles: true }));
  if (atEnd()) return;
  drawn = true;
  end.scrollIntoView({ block: "end" });
};
const touched = (element) => {
  const selection = getSelection();
  return element.querySelector("details[open]") || element.contains(document.activeElement)
    || (!selection.isCollapsed && element.contains(selection.anchorNode));
};
const last = () => turns.lastElementChild?.id.slice(1) ?? "0";

const put = (list, items, key) => {
  for (const item of [...items]) {
    const known = [...list.children].find((child) => key(child) === key(item));
    if (!known) list.append(item);
    else if (!touched(known) && known.innerHTML !== item.innerHTML) known.replaceWith(item);
  }
};
const take = (text) => {
  const news = new DOMParser().parseFromString(text, "text/html"); // escaped by the server
  const part = (name) => news.querySelector(`[data-part=${name}]`);
  state.dataset.state = part("state").dataset.state;
  if (state.dataset.state === "waiting") return; // nothing tells of it for a moment: what is known stays
  state.innerHTML = part("state").innerHTML;
  for (const name of ["title", "prompt", "about"]) {
    const place = document.getElementById(`live-${name}`);
    if (part(name) && !touched(place)) place.innerHTML = part(name).innerHTML;
  }
  put(outline, part("outline").children, (e) => e.querySelector("a").hash);
  put(turns, part("turns").children, (e) => e.id);
  show();
  if (following) toEnd();
};
const ask = async () => {
  let wait = CALM;
  if (!document.hidden) {
    const answer = await fetch(`?part=live&from=${last()}`, { headers: etag ? { "If-None-Match": etag } : {} }).catch(() => null);
    if (answer?.status === 200) {
      etag = answer.headers.get("ETag");
      take(await answer.text());
      quiet = 0;
    } else quiet += 1;
    wait = answer && quiet < PATIENCE ? EVERY : CALM;
  }
  if (!over()) setTimeout(ask, wait);
};

addEventListener("scroll", () => {
  if (drawn) { drawn = false; return; }
  if (atEnd() !== following) {
    following = !following;
    show();
  }
}, { passive: true });
button.addEventListener("click", () => {
  following = !following;
  show();
  if (following) toEnd();
});
show();
if (following) toEnd();
if (!over()) setTimeout(ask, EVERY);
