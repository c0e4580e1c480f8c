// The form of a configuration says while one types what saving would say: every problem at its field,
// what differs from the revision it starts from, and what that means for the gate's power.
const form = document.querySelector("form[data-check]");
const live = document.getElementById("live");
let timer = 0;
let asked = 0;

const put = (list, texts) => {
  list.replaceChildren(...texts.map((text) => {
    const item = document.createElement("li");
    item.textContent = text;
    return item;
  }));
};

const show = ({ problems, changes, note }) => {
  const at = new Map();
  for (const { path, message } of problems) {
    let name = path;
    while (name && !form.elements[name]) name = name.slice(0, Math.max(name.lastIndexOf("."), 0));
    at.set(name, [...(at.get(name) ?? []), message]);
  }
  for (const place of form.querySelectorAll("[data-said]")) {
    const said = at.get(place.dataset.said);
    place.textContent = said ? said.join(" · ") : "";
    place.hidden = !said;
    form.elements[place.dataset.said]?.setAttribute("aria-invalid", said ? "true" : "false");
  }
  const verdict = live.querySelector("[data-verdict]");
  const list = live.querySelector("[data-list]");
  verdict.className = problems.length ? "bad" : "ok";
  if (problems.length) {
    verdict.textContent = live.dataset.bad;
    put(list, problems.map((p) => (p.path ? `${p.path}: ${p.message}` : p.message)));
  } else {
    verdict.textContent = changes.length || !("based" in form.dataset) ? live.dataset.good : live.dataset.same;
    put(list, changes.map(([path, before, after]) => `${path}: ${before} → ${after}`));
  }
  live.querySelector("[data-note]").textContent = note;
};

const ask = async () => {
  const mine = ++asked;
  try {
    const answer = await fetch(form.dataset.check, { method: "POST", body: new FormData(form) });
    if (!answer.ok) throw new Error(answer.status);
    const said = await answer.json();
    if (mine === asked) show(said);
  } catch {
    live.querySelector("[data-verdict]").textContent = live.dataset.lost;
  }
};

form?.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(ask, 250);
});
if (form) ask();
