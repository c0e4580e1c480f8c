// Copies a whole hash whose first eight digits are shown.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.classList.add("ok");
    setTimeout(() => button.classList.remove("ok"), 1500);
  } catch { /* no clipboard over plain HTTP; the title shows the whole hash */ }
});
