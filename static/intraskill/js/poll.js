// Adaptive polling. #poll asks for the page's live fragments: often while something runs and the reader is
// there, now and then while he is there (somebody may start what stands still), else seldom, never in a hidden tab. An answer without news is a 304. A fragment is replaced only
// when its token changed, and never while the reader edits or selects in it; what he scrolled or opened stays.
const poll = document.getElementById("poll");
const QUICK = 3000, CALM = 10000, SLOW = 60000, ATTENTION = 60000;
let etag = poll?.dataset.etag;
let lastUse = Date.now();
let timer = 0;

const wait = () => {
  const isHere = Date.now() - lastUse < ATTENTION;
  if (poll.dataset.active !== "1") return isHere ? CALM : SLOW;
  return isHere ? QUICK : CALM;
};
const plan = (delay) => {
  clearTimeout(timer);
  if (!document.hidden) timer = setTimeout(ask, delay);
};
const ask = () => window.htmx.trigger(poll, "poll");

const busyIn = (element) => {
  const focus = document.activeElement;
  if (element.contains(focus) && focus.matches("input, select, textarea")) return true;
  if (element.querySelector("dialog[open]")) return true;
  const selection = getSelection();
  return !selection.isCollapsed && element.contains(selection.anchorNode);
};

// What the reader did inside a fragment, by the order of the elements in it.
const remember = (element) => ({
  open: [...element.querySelectorAll("details")].map((d) => d.open),
  scroll: [...element.querySelectorAll(".scroll, .log")].map((s) => [s.scrollLeft, s.scrollTop]),
  focus: element.contains(document.activeElement) ? document.activeElement.id : "",
});
const restore = (element, state) => {
  element.querySelectorAll("details").forEach((d, i) => { if (i in state.open) d.open = state.open[i]; });
  element.querySelectorAll(".scroll, .log").forEach((s, i) => {
    if (i in state.scroll) [s.scrollLeft, s.scrollTop] = state.scroll[i];
  });
  if (state.focus) document.getElementById(state.focus)?.focus({ preventScroll: true });
};

if (poll && window.htmx) {
  const kept = new Map();
  poll.addEventListener("htmx:configRequest", (event) => {
    if (etag) event.detail.headers["If-None-Match"] = etag;
  });
  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    const { target, fragment } = event.detail;
    const news = fragment.firstElementChild;
    if (!news || news.dataset.token === target.dataset.token || busyIn(target)) {
      event.detail.shouldSwap = false;
      return;
    }
    kept.set(target.id, remember(target));
  });
  document.addEventListener("htmx:oobAfterSwap", (event) => {
    const id = event.detail.target.id;
    const element = document.getElementById(id);
    if (element && kept.has(id)) restore(element, kept.get(id));
    kept.delete(id);
  });
  poll.addEventListener("htmx:afterRequest", (event) => {
    const { xhr } = event.detail;
    const fresh = xhr.getResponseHeader("ETag");
    if (xhr.status === 200 && fresh) etag = fresh;
    const active = xhr.getResponseHeader("X-Active");
    if (active) poll.dataset.active = active;
    const isAway = !event.detail.successful && xhr.status !== 304;
    document.getElementById("offline").hidden = !isAway;
    plan(isAway ? CALM : wait());
  });
  for (const kind of ["pointermove", "keydown", "focus"]) {
    addEventListener(kind, () => { lastUse = Date.now(); }, { passive: true });
  }
  document.addEventListener("visibilitychange", () => {
    lastUse = Date.now();
    plan(200);
  });
  plan(wait());
}
