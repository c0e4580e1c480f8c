// Keeps "3 s ago" true between two polls: <time data-ago datetime="…">.
const format = new Intl.RelativeTimeFormat(document.documentElement.lang, { numeric: "always", style: "narrow" });
const UNITS = [["second", 1, 60], ["minute", 60, 3600], ["hour", 3600, 86400], ["day", 86400, Infinity]];

const tick = () => {
  if (document.hidden) return;
  for (const element of document.querySelectorAll("time[data-ago]")) {
    const age = Math.max(0, (Date.now() - Date.parse(element.dateTime)) / 1000);
    const [unit, size] = UNITS.find(([, , limit]) => age < limit);
    element.textContent = format.format(-Math.floor(age / size), unit);
  }
};
tick();
setInterval(tick, 1000);
