// The zoom page: plotly draws what the server reduced to the pixels asked for. Window and legend live in the URL.
const root = document.getElementById("zoom");
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const COLOURS = ["--d1", "--d2", "--d3", "--d4", "--d5"];
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash"];
const here = new URL(location.href);

// getPropertyValue gives "light-dark(a, b)"; a probe element resolves it to one colour.
const colour = (name) => {
  const probe = document.createElement("i");
  probe.hidden = true;
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
};

const load = async (range) => {
  const url = new URL(root.dataset.series, location.href);
  url.searchParams.set("px", Math.round(root.clientWidth));
  if (range) { url.searchParams.set("x0", range[0]); url.searchParams.set("x1", range[1]); }
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${answer.status}`);
  return answer.json();
};

// Steps and updates are whole numbers: few of them have no ticks between.
const tick = (data, range) => {
  const ends = range ?? data.series.flatMap((s) => [s.x[0], s.x.at(-1)]);
  return Math.max(...ends) - Math.min(...ends) < 8 ? 1 : undefined;
};

const layout = (data, range) => ({
  paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", autosize: true,
  margin: { l: 56, r: 16, t: 8, b: 44 }, hovermode: "x unified",
  font: { family: css("--font"), size: 12, color: colour("--ink-2") },
  xaxis: { title: { text: data.x_label }, gridcolor: colour("--line"), zerolinecolor: colour("--line-2"), range: range ?? undefined, dtick: tick(data, range) },
  yaxis: { gridcolor: colour("--line"), zerolinecolor: colour("--line-2") },
  legend: { orientation: "h", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom" }, // grows upwards, off the plot
});

const traces = (data) => data.series.flatMap((s, i) => {
  const line = { color: colour(COLOURS[i % COLOURS.length]), dash: DASHES[(i + Math.floor(i / COLOURS.length)) % DASHES.length], width: 2 };
  const hidden = here.searchParams.getAll("hide").includes(s.name) ? "legendonly" : true;
  const band = s.low.some((v, k) => v !== s.high[k]) ? [
    { x: s.x, y: s.high, mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false, visible: hidden },
    { x: s.x, y: s.low, mode: "lines", line: { width: 0 }, fill: "tonexty", opacity: 0.2, hoverinfo: "skip", showlegend: false, visible: hidden },
  ] : [];
  return [...band, { x: s.x, y: s.last, name: s.name, mode: s.x.length < 80 ? "lines+markers" : "lines", line, visible: hidden }];
});

const remember = () => history.replaceState(null, "", here);

const draw = async () => {
  const range = here.searchParams.has("x0") ? [Number(here.searchParams.get("x0")), Number(here.searchParams.get("x1"))] : null;
  const data = await load(range);
  document.getElementById("zoom-count").textContent = data.shown;
  await window.Plotly.react(root, traces(data), layout(data, range), { responsive: true, displayModeBar: false });
};

if (root && window.Plotly) {
  await draw();
  root.on("plotly_relayout", (change) => {
    if (change["xaxis.autorange"]) { here.searchParams.delete("x0"); here.searchParams.delete("x1"); }
    else if ("xaxis.range[0]" in change) {
      here.searchParams.set("x0", change["xaxis.range[0]"]);
      here.searchParams.set("x1", change["xaxis.range[1]"]);
    } else return;
    remember();
    draw();
  });
  root.on("plotly_legendclick", (event) => {
    const name = event.data[event.curveNumber].name;
    const hidden = new Set(here.searchParams.getAll("hide"));
    hidden.has(name) ? hidden.delete(name) : hidden.add(name);
    here.searchParams.delete("hide");
    hidden.forEach((h) => here.searchParams.append("hide", h));
    remember();
  });
  document.addEventListener("themechange", draw);
}
