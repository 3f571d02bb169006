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

  const EVERY_MS = 5000;
  const live = [...document.querySelectorAll("[data-live]")];
  const refresh = async () => {
    try {
      const answer = document.hidden || first ? null : await fetch(location.href);
      const page = answer?.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
      for (const each of page ? live : []) {
        const now = page.getElementById(each.id);
        if (now && now.innerHTML !== each.innerHTML) each.innerHTML = now.innerHTML;
      }
    } catch { /* the next request may be answered */ }
    setTimeout(refresh, EVERY_MS);
  };
  if (live.length) setTimeout(refresh, EVERY_MS);
})();
