// Choosing among many: words narrow the list, what is chosen stays in sight, and no more than the server draws
// can be chosen.
const box = document.querySelector("[data-pick]");
const options = box ? [...box.form.querySelectorAll("label:has(input[type=checkbox])")] : [];

const show = () => {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  const chosen = options.filter((option) => option.control.checked).length;
  for (const option of options) {
    const { checked } = option.control;
    option.hidden = !checked && !words.every((word) => option.textContent.toLowerCase().includes(word));
    option.control.disabled = !checked && chosen >= Number(box.dataset.pick);
  }
};
if (box) {
  box.addEventListener("input", show);
  box.form.addEventListener("change", show);
  show();
}
