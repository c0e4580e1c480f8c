// Keeps clocks true between two polls: <time data-ago> says how long ago, <time data-since> how long already.
// The wording comes from the server, on <body>.
const words = document.body.dataset;
const UNITS = [["S", 1, 1, 60], ["Min", 60, 1, 3600], ["H", 3600, 60, 86400], ["D", 86400, 3600, Infinity]];

const say = (kind, element) => {
  const age = Math.max(0, Math.floor((Date.now() - Date.parse(element.dateTime)) / 1000));
  const [unit, size, part] = UNITS.find(([, , , limit]) => age < limit);
  const rest = String(Math.floor((age % size) / part)).padStart(2, "0");
  element.textContent = words[kind + unit].replace("##", rest).replace("#", Math.floor(age / size));
};
const tick = () => {
  if (document.hidden) return;
  document.querySelectorAll("time[data-ago]").forEach((e) => say("ago", e));
  document.querySelectorAll("time[data-since]").forEach((e) => say("span", e));
};
setInterval(tick, 1000);
