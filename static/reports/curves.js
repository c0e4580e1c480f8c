// The training curve: one metric, each step thin, the mean of five thick; round borders dotted; a slider reads values.
(() => {
  const data = window.reportCurves;
  const figure = document.querySelector('[data-plot="curves"]');
  if (!data || !figure || !window.Plotly) return;
  const place = figure.querySelector(".plotly");
  const pick = figure.querySelector('[data-pick="metric"]');
  const slider = figure.querySelector("[data-slider]");
  const output = figure.querySelector("[data-output]");
  const word = (name) => figure.getAttribute(`data-word-${name}`);
  const show = (value) => (value === null || value === undefined ? "–" : value.toFixed(4));

  const read = () => {
    const at = data.steps.indexOf(Number(slider.value));
    const series = data.metrics[pick.value];
    output.textContent = at < 0 ? slider.value : `${slider.value}: ${show(series.raw[at])} (${word("mean")} ${show(series.mean[at])})`;
  };
  const draw = () => {
    const series = data.metrics[pick.value];
    const line = window.reportColour("--d1");
    const traces = [
      { x: data.steps, y: series.raw, name: word("raw"), mode: "lines", line: { color: line, width: 1 }, opacity: 0.45 },
      { x: data.steps, y: series.mean, name: word("mean"), mode: "lines", line: { color: line, width: 2.5 } },
    ];
    if (pick.value === data.q_metric && data.q !== null) {
      const ends = [data.steps[0], data.steps.at(-1)];
      traces.push({ x: ends, y: [data.q, data.q], name: word("q"), mode: "lines", line: { color: window.reportColour("--ink"), dash: "dash", width: 1.5 } });
    }
    const borders = data.steps.filter((_, i) => i && data.rounds[i] !== data.rounds[i - 1]).map((step) => step - 0.5);
    const grid = window.reportColour("--line");
    const mark = window.reportColour("--line-2");
    const shapes = [...borders.map((x) => ({ type: "line", x0: x, x1: x, yref: "paper", y0: 0, y1: 1, line: { color: mark, dash: "dot", width: 1 } })),
      { type: "line", x0: Number(slider.value), x1: Number(slider.value), yref: "paper", y0: 0, y1: 1, line: { color: mark, width: 1 } }];
    const layout = window.reportLayout({
      hovermode: "x unified", shapes,
      xaxis: { title: { text: word("step") }, gridcolor: grid, zerolinecolor: grid },
      yaxis: { gridcolor: grid, zerolinecolor: grid, tickformat: ".2f" },
    });
    window.Plotly.react(place, traces, layout, { responsive: true, displayModeBar: false });
    const known = series.mean.filter((v) => v !== null);
    figure.querySelector("[data-summary]").textContent = `${pick.selectedOptions[0].textContent}: ${show(known[0])} → ${show(known.at(-1))} (${word("mean")})`;
    window.reportTable(figure.querySelector("[data-numbers]"), [word("step"), word("round"), word("raw"), word("mean")],
      data.steps.map((step, i) => [step, data.rounds[i], show(series.raw[i]), show(series.mean[i])]));
    read();
  };
  pick.addEventListener("change", draw);
  slider.addEventListener("input", draw);
  document.addEventListener("themechange", draw);
  draw();
})();
