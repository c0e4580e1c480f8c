// The behaviour explorer: population × outcome × metric × statistic, one bar a cohort.
(() => {
  const data = window.reportBehaviour;
  const figure = document.querySelector('[data-plot="behaviour"]');
  if (!data || !figure || !window.Plotly) return;
  const place = figure.querySelector(".plotly");
  const chosen = (name) => figure.querySelector(`[data-pick="${name}"]`).value;
  const word = (name) => figure.getAttribute(`data-word-${name}`);
  const draw = () => {
    const [metric, statistic] = [chosen("metric"), chosen("statistic")];
    const rows = data.filter((c) => c.split === chosen("split") && c.outcome === chosen("outcome") && c.metrics[metric]);
    const values = rows.map((c) => c.metrics[metric][statistic]);
    const grid = window.reportColour("--line");
    const traces = [{
      type: "bar", x: rows.map((c) => c.name), y: values, text: rows.map((c, i) => `${values[i].toFixed(2)}`), textposition: "auto",
      customdata: rows.map((c) => c.metrics[metric].n), hovertemplate: `%{x}: %{y:.4f}<br>n %{customdata}<extra></extra>`,
      marker: { color: window.reportColour("--d1") },
    }];
    const layout = window.reportLayout({
      showlegend: false, bargap: 0.4,
      xaxis: { type: "category", gridcolor: grid, automargin: true }, yaxis: { gridcolor: grid, zerolinecolor: grid, rangemode: "tozero" },
    });
    window.Plotly.react(place, traces, layout, { responsive: true, displayModeBar: false });
    const label = figure.querySelector('[data-pick="metric"]').selectedOptions[0].textContent;
    const lines = rows.map((c, i) => `${c.name} ${values[i].toFixed(3)} (n ${c.metrics[metric].n})`);
    figure.querySelector("[data-summary]").textContent = rows.length ? `${label}: ${lines.join(", ")}` : word("empty");
    window.reportTable(figure.querySelector("[data-numbers]"), ["", label, word("n")], rows.map((c, i) => [c.name, values[i].toFixed(4), c.metrics[metric].n]));
  };
  figure.querySelectorAll("[data-pick]").forEach((select) => select.addEventListener("change", draw));
  document.addEventListener("themechange", draw);
  draw();
})();
