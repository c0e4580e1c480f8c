// A log that is read by byte offset and followed until the reader scrolls up. Never loads the whole file.
const LIMIT = 5000; // lines kept in the page; older ones stay in the file

for (const log of document.querySelectorAll("[data-log]")) {
  const state = log.parentElement.querySelector("[data-follow]");
  let next = Number(log.dataset.next);
  let following = true;
  let timer = 0;
  const toEnd = () => { log.scrollTop = log.scrollHeight; };

  const show = () => {
    state.textContent = following ? state.dataset.on : state.dataset.off;
    state.setAttribute("aria-pressed", String(following));
  };

  const ask = async () => {
    clearTimeout(timer);
    let delay = 2000;
    if (!document.hidden && following) {
      try {
        const answer = await fetch(`${log.dataset.log}&from=${next}`, { headers: { "X-Requested-With": "fetch" } });
        if (answer.ok) {
          const text = await answer.text();
          next = Number(answer.headers.get("X-Log-Next"));
          if (text.trim()) {
            log.insertAdjacentHTML("beforeend", text); // escaped by the server, classes only
            while (log.childElementCount > LIMIT) log.firstElementChild.remove();
            toEnd();
            delay = 500;
          }
          if (answer.headers.get("X-Log-Ended") === "1" && !text.trim()) return;
        }
      } catch { delay = 10000; } // the server is away; ask again later
    }
    timer = setTimeout(ask, delay);
  };

  log.addEventListener("scroll", () => {
    const last = log.scrollHeight - log.scrollTop - log.clientHeight < 8;
    if (last !== following) { following = last; show(); }
  });
  state?.addEventListener("click", () => {
    following = !following;
    show();
    if (following) { toEnd(); ask(); }
  });
  if (location.hash.startsWith("#L")) {
    following = false;
    document.querySelector(location.hash)?.scrollIntoView({ block: "center" });
  } else {
    toEnd();
    addEventListener("load", toEnd);
  }
  show();
  if (log.dataset.ended !== "1") timer = setTimeout(ask, 1000);
}
