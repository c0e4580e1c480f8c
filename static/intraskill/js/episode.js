// Episode page: c compares or stops comparing; the outline follows what is read.
document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, textarea, select, dialog") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "c") document.querySelector("a[data-compare]")?.click();
});

const links = new Map([...document.querySelectorAll(".outline a[href^='#']")].map((a) => [a.hash.slice(1), a]));
const watcher = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    links.forEach((a, id) => a.classList.toggle("here", id === target.id));
  }
}, { rootMargin: "-64px 0px -70% 0px" });
document.querySelectorAll(".turn[id]").forEach((turn) => watcher.observe(turn));
