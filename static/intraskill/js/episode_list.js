// The newest page of the list follows what is still being played: it asks now and then whether there are newer
// episodes, and offers them. Nothing moves under the reader by itself; a hidden tab asks nothing.
const news = document.getElementById("newer");
const EVERY = 10000, AT_MOST = 120000;
let wait = EVERY;

const ask = async () => {
  if (!document.hidden) {
    const query = new URLSearchParams(location.search);
    query.set("format", "json");
    query.set("after", news.dataset.after);
    const answer = await fetch(`${location.pathname}?${query}`, { headers: { Accept: "application/json" } }).catch(() => null);
    const count = answer?.ok ? (await answer.json()).results.length : 0;
    if (count) {
      news.querySelector("a").textContent = news.dataset.text.replace("0", count >= 50 ? "50+" : count);
      news.hidden = false;
    }
    wait = count ? EVERY : Math.min(AT_MOST, wait * 1.5);
  }
  setTimeout(ask, wait);
};
if (news) setTimeout(ask, wait);
