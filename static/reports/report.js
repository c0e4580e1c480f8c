// Theme and language of a report: no network, no modules, works from file://. Runs in the head, before anything is drawn.
(() => {
  const root = document.documentElement;
  const kept = (key, value) => {
    try {
      if (value === undefined) return localStorage.getItem(key);
      localStorage.setItem(key, value);
    } catch { /* private windows keep nothing */ }
    return null;
  };
  const theme = kept("intraskill-theme");
  if (theme === "dark" || theme === "light") root.dataset.theme = theme;
  const isDark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;

  document.addEventListener("click", (event) => {
    const target = event.target instanceof Element ? event.target : null;
    if (target?.closest("[data-theme-toggle]")) {
      root.dataset.theme = isDark() ? "light" : "dark";
      kept("intraskill-theme", root.dataset.theme);
      document.dispatchEvent(new CustomEvent("themechange"));
    }
    const other = target?.closest("[data-keep-anchor]");
    if (other) other.href = other.getAttribute("href").split("#")[0] + location.hash;
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => document.dispatchEvent(new CustomEvent("themechange")));

  // An anchor inside a fold opens the fold.
  const openTarget = () => {
    const found = location.hash ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
    for (let at = found; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    if (found) found.scrollIntoView();
  };
  addEventListener("hashchange", openTarget);
  addEventListener("DOMContentLoaded", openTarget);

  // A colour token as one colour: a probe resolves light-dark() for the present theme.
  window.reportColour = (name) => {
    const probe = document.createElement("i");
    probe.hidden = true;
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const value = getComputedStyle(probe).color;
    probe.remove();
    return value;
  };
  window.reportLayout = (more) => ({
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    autosize: true,
    margin: { l: 56, r: 16, t: 8, b: 44 },
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: window.reportColour("--ink-2") },
    legend: { orientation: "h", y: 1.12 },
    ...more,
  });
  window.reportTable = (table, head, rows) => {
    const line = (cells, kind) => {
      const row = document.createElement("tr");
      cells.forEach((text, i) => {
        const cell = document.createElement(kind);
        cell.textContent = text ?? "–";
        if (i) cell.className = "num";
        if (kind === "th") cell.scope = "col";
        row.append(cell);
      });
      return row;
    };
    const top = document.createElement("thead");
    const body = document.createElement("tbody");
    top.append(line(head, "th"));
    rows.forEach((cells) => body.append(line(cells, "td")));
    table.replaceChildren(top, body);
  };
})();
