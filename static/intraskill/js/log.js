// A log that is read by byte offset and followed until the reader scrolls up. Never loads the whole file.
const LIMIT = 5000; // lines kept in the page; older ones stay in the file

const follow = (log) => {
  log.dataset.ready = "1";
  const card = log.parentElement;
  const button = () => card.querySelector("[data-follow]"); // a poll takes it away once the log is complete
  let next = Number(log.dataset.next);
  let following = Boolean(button()) && !location.hash.startsWith("#L");
  let timer = 0;
  const toEnd = () => { log.scrollTop = log.scrollHeight; };
  const show = () => {
    const shown = button();
    if (!shown) return;
    shown.textContent = following ? shown.dataset.on : shown.dataset.off;
    shown.setAttribute("aria-pressed", String(following));
  };

  const append = (text) => {
    log.insertAdjacentHTML("beforeend", text); // escaped by the server, classes only
    while (log.childElementCount > LIMIT) log.firstElementChild.remove();
    toEnd();
  };

  // Milliseconds until the next question; 0 when the log is complete.
  const read = async () => {
    if (document.hidden || !following) return 2000;
    const answer = await fetch(`${log.dataset.log}&from=${next}`);
    if (!answer.ok) return 10000;
    const text = await answer.text();
    next = Number(answer.headers.get("X-Log-Next"));
    if (text.trim()) {
      append(text);
      return 500;
    }
    return answer.headers.get("X-Log-Ended") === "1" ? 0 : 2000;
  };
  const ask = async () => {
    clearTimeout(timer);
    if (!log.isConnected) return; // the page shows another attempt now
    const delay = await read().catch(() => 10000); // the server is away
    if (delay) timer = setTimeout(ask, delay);
  };

  if (!location.hash.startsWith("#L")) toEnd();
  else document.querySelector(location.hash)?.scrollIntoView({ block: "center" });
  if (!button()) return; // complete: nothing more will come

  log.addEventListener("scroll", () => {
    const last = log.scrollHeight - log.scrollTop - log.clientHeight < 8;
    if (last !== following) {
      following = last;
      show();
    }
  });
  card.addEventListener("click", (event) => {
    if (!event.target.closest("[data-follow]")) return;
    following = !following;
    show();
    if (following) {
      toEnd();
      ask();
    }
  });
  show();
  timer = setTimeout(ask, 1000);
};

// The lines around an error open at the error.
for (const first of document.querySelectorAll(".log.short .first")) {
  const box = first.parentElement;
  box.scrollTop = first.offsetTop - box.clientHeight / 3;
}

const start = () => document.querySelectorAll("[data-log]:not([data-ready])").forEach(follow);
start();
document.addEventListener("htmx:oobAfterSwap", start);
