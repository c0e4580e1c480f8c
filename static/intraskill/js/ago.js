// Keeps "3 s ago" true between two polls: <time data-ago datetime="…">, worded by the server on <body>.
const words = document.body.dataset;
const UNITS = [["agoS", 1, 60], ["agoMin", 60, 3600], ["agoH", 3600, 86400], ["agoD", 86400, Infinity]];

const tick = () => {
  if (document.hidden) return;
  for (const element of document.querySelectorAll("time[data-ago]")) {
    const age = Math.max(0, Math.floor((Date.now() - Date.parse(element.dateTime)) / 1000));
    const [unit, size] = UNITS.find(([, , limit]) => age < limit);
    element.textContent = words[unit].replace("#", Math.floor(age / size));
  }
};
setInterval(tick, 1000);
