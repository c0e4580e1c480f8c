// Dialogs, confirmations, toasts and greyed buttons.
document.addEventListener("click", (event) => {
  // A greyed button keeps the focus, so that its reason can be read, and does nothing.
  if (event.target.closest("[aria-disabled=true]")) {
    event.preventDefault();
    return;
  }
  const opener = event.target.closest("[data-dialog]");
  if (opener) document.querySelector(opener.dataset.dialog)?.showModal();
  event.target.closest("[data-close]")?.closest("dialog").close();
  const closer = event.target.closest("[data-dismiss]");
  if (closer) closer.closest(closer.dataset.dismiss)?.remove();
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  const dialog = form.dataset.confirm && document.querySelector(form.dataset.confirm);
  if (dialog && !dialog.open) {
    event.preventDefault(); // the same form is sent by the button in the dialog
    dialog.showModal();
    return;
  }
  event.submitter?.setAttribute("aria-busy", "true");
  const slow = (event.submitter ?? form).closest("[data-busy]");
  if (!slow) return;
  // Its answer takes seconds: it is said, and the form is sent once.
  for (const button of form.querySelectorAll("button:not([type=button])")) button.setAttribute("aria-disabled", "true");
  dialog?.close();
  document.querySelector(slow.dataset.says).textContent = slow.dataset.busy;
});

// Who comes back to a page that waited finds it as it is now.
addEventListener("pageshow", (event) => {
  if (event.persisted && document.querySelector("[aria-busy=true]")) location.reload();
});

// Only results that need no answer go by themselves; errors stay until closed.
for (const toast of document.querySelectorAll(".toast:not(.error)")) {
  setTimeout(() => toast.remove(), 8000);
}

// A menu closes when the reader clicks elsewhere or presses Escape.
const menus = () => document.querySelectorAll("details:is(.menu, .account, .more)[open]");
document.addEventListener("click", (event) => {
  menus().forEach((m) => { if (!m.contains(event.target)) m.open = false; });
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") menus().forEach((m) => { m.open = false; m.querySelector("summary").focus(); });
});
