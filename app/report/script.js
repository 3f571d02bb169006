"use strict";
(() => {
  const root = document.documentElement;
  const store = { get: () => { try { return localStorage.getItem("theme"); } catch { return null; } },
    set: (value) => { try { localStorage.setItem("theme", value); } catch { /* kept for this page only */ } } };
  const isDark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const chosen = store.get();
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
  const theme = document.getElementById("theme");
  theme.hidden = false;
  theme.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; store.set(root.dataset.theme); });

  const open = (element) => { for (let at = element; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true; };
  const reveal = () => { const found = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (found && found.tagName === "DETAILS") { open(found); found.scrollIntoView(); } };
  addEventListener("hashchange", reveal);
  reveal();

  for (const button of document.querySelectorAll(".fold")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const isOpen = button.dataset.open === "1";
      document.querySelectorAll(".waterfall details").forEach((node, number) => { node.open = isOpen || number === 0; });
    });
  }

  const rows = document.querySelector(".stages");
  const sort = (head) => {
    const key = Number(head.dataset.sort), sign = key === 0 ? 1 : -1;
    const value = (row) => Number(row.dataset.keys.split(" ")[key]);
    document.querySelectorAll("[aria-sort]").forEach((other) => other.removeAttribute("aria-sort"));
    if (key) head.setAttribute("aria-sort", "descending");
    rows.append(...[...rows.querySelectorAll(".stagerow")].sort((one, other) => sign * (value(one) - value(other))));
  };
  const head = document.querySelector(".stagehead");
  if (head) head.removeAttribute("aria-hidden");
  for (const cell of document.querySelectorAll("[data-sort]")) {
    cell.tabIndex = 0;
    cell.setAttribute("role", "button");
    cell.addEventListener("click", () => sort(cell));
    cell.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(cell); } });
  }

  let folded = [];
  addEventListener("beforeprint", () => { folded = [...document.querySelectorAll("details:not([open])")]; folded.forEach((each) => { each.open = true; }); });
  addEventListener("afterprint", () => folded.forEach((each) => { each.open = false; }));
})();
