"use strict";
(() => {
  let first = null;
  const choose = (button) => {
    first = button;
    for (const each of document.querySelectorAll("[data-run]")) {
      each.setAttribute("aria-pressed", String(each === first));
      each.textContent = !first ? "compare" : each === first ? "chosen" : "with this";
    }
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-run]");
    if (!button) return;
    if (!first || button === first) { choose(first ? null : button); return; }
    location.assign(`/compare?one=${encodeURIComponent(first.dataset.run)}&other=${encodeURIComponent(button.dataset.run)}`);
  });
  addEventListener("pageshow", () => choose(null));
})();
