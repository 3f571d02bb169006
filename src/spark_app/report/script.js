"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("has-script");
  const all = (selector) => [...document.querySelectorAll(selector)];
  /** Listens to an event of all elements of a selector, also of those that come later. */
  const on = (kind, selector, act) => document.addEventListener(kind, (event) => {
    const found = event.target.closest(selector);
    if (found) act(found, event);
  });

  const store = { get: () => { try { return localStorage.getItem("theme"); } catch { return null; } },
    set: (value) => { try { localStorage.setItem("theme", value); } catch { /* kept for this page only */ } } };
  const isDark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const chosen = store.get();
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
  on("click", "#theme", () => { root.dataset.theme = isDark() ? "light" : "dark"; store.set(root.dataset.theme); });

  if (matchMedia("(max-width: 900px)").matches) for (const each of all("details.roomy")) each.open = false; // on a phone they are screens long
  const open = (element) => { for (let at = element; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true; };
  const reveal = () => { const found = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (found && found.tagName === "DETAILS") { open(found); found.scrollIntoView(); } };
  addEventListener("hashchange", reveal);
  reveal();

  on("click", ".fold", (button) => all(".waterfall details").forEach((node, number) => { node.open = button.dataset.open === "1" || number === 0; }));

  const copied = async (text) => {
    try { await navigator.clipboard.writeText(text); return true; } catch { /* not allowed here: the way of before */ }
    const area = Object.assign(document.createElement("textarea"), { value: text });
    document.body.append(area);
    area.select();
    const isDone = document.execCommand("copy");
    area.remove();
    return isDone;
  };
  on("click", "[data-copy]", async (button) => {
    const label = button.dataset.label ??= button.textContent;
    button.textContent = await copied(button.dataset.copy) ? "Copied" : "Not copied: the browser refuses it";
    setTimeout(() => { button.textContent = label; }, 2000);
  });

  let sorted = null;
  const sort = () => {
    const rows = document.querySelector(".stages table"), sign = sorted === 0 ? 1 : -1;
    const value = (row) => Number(row.dataset.keys.split(" ")[sorted]);
    all("[data-sort]").forEach((head) => (Number(head.dataset.sort) === sorted ? head.setAttribute("aria-sort", sorted === 0 ? "ascending" : "descending") : head.removeAttribute("aria-sort")));
    all(".stages .group").forEach((group) => { group.hidden = true; }); // the rows are in one order then
    rows.append(...all(".stagebody").sort((one, other) => sign * (value(one) - value(other))));
  };
  on("click", "[data-sort] button", (button) => { sorted = Number(button.parentElement.dataset.sort); sort(); });
  /** What a script adds to the page; again after each update of a page that is followed. */
  const prepare = () => {
    for (const head of all("[data-sort]:not(:has(button))")) {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: head.textContent });
      head.replaceChildren(button);
    }
    if (sorted !== null && document.querySelector(".stages")) sort();
  };
  addEventListener("updated", prepare);
  prepare();

  let folded = [];
  addEventListener("beforeprint", () => { folded = all("details:not([open])"); folded.forEach((each) => { each.open = true; }); });
  addEventListener("afterprint", () => folded.forEach((each) => { each.open = false; }));
})();
