// The bell and the title count unread signals. The page's own poll brings the number in a header; a page
// that does not poll asks for it once a minute while it is looked at.
const bell = document.querySelector("[data-bell]");
const MINUTE = 60000;
const BADGE = /^\(\d+\+?\) /;

const title = () => {
  const plain = document.title.replace(BADGE, "");
  const wanted = bell.dataset.bell ? `(${bell.dataset.bell}) ${plain}` : plain;
  if (document.title !== wanted) document.title = wanted;
};
const show = (unread) => {
  if (unread === null) return;
  if (unread !== bell.dataset.bell) {
    bell.dataset.bell = unread;
    bell.querySelector("b")?.remove();
    if (unread) {
      const badge = document.createElement("b");
      badge.textContent = unread;
      bell.append(badge);
    }
    bell.setAttribute("aria-label", unread ? bell.dataset.words.replace("#", unread) : bell.dataset.none);
  }
  title();
};
const ask = async () => {
  if (document.hidden) return;
  try {
    const answer = await fetch(bell.dataset.ask, { redirect: "error" });
    if (answer.ok) show(answer.headers.get("X-Unread"));
  } catch { /* the server is away; the next minute may find it */ }
};

if (bell) {
  title();
  if (document.getElementById("poll")) {
    document.addEventListener("htmx:afterRequest", (event) => show(event.detail.xhr.getResponseHeader("X-Unread")));
  } else {
    setInterval(ask, MINUTE);
    document.addEventListener("visibilitychange", ask);
  }
}
