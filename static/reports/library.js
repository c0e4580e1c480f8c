// Search over the documents of the page itself: all words must occur; hits are marked and their folds opened.
(() => {
  const library = document.querySelector("[data-library]");
  if (!library) return;
  const field = library.querySelector("[data-find]");
  const found = library.querySelector("[data-found]");
  const none = library.querySelector("[data-none]");
  const documents = [...library.querySelectorAll("[data-document]")].map((node) => {
    const body = node.querySelector(".doc");
    return { node, body, text: body.textContent, head: node.querySelector("summary").textContent };
  });
  const escape = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const mark = (entry, words) => {
    if (!words.length) { entry.body.textContent = entry.text; return; }
    const pattern = new RegExp(words.map(escape).join("|"), "gi");
    const parts = [];
    let last = 0;
    for (const hit of entry.text.matchAll(pattern)) {
      const piece = document.createElement("mark");
      piece.textContent = hit[0];
      parts.push(entry.text.slice(last, hit.index), piece);
      last = hit.index + hit[0].length;
      if (parts.length > 2000) break;
    }
    entry.body.replaceChildren(...parts, entry.text.slice(last));
  };
  const search = () => {
    const words = field.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    documents.forEach((entry) => {
      const haystack = `${entry.head}\n${entry.text}`.toLowerCase();
      const hit = words.every((word) => haystack.includes(word));
      entry.node.hidden = !hit;
      count += hit ? 1 : 0;
      mark(entry, hit ? words : []);
      if (!words.length) entry.node.open = false;
    });
    if (words.length && count && count <= 3) documents.filter((e) => !e.node.hidden).forEach((e) => { e.node.open = true; });
    none.hidden = count > 0;
    found.textContent = words.length ? `${count} / ${found.dataset.of}` : found.dataset.of;
  };
  field.addEventListener("input", search);
})();
