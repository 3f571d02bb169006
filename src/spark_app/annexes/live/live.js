"use strict";
(() => {
  const PAUSE_MS = 2000, MAX_FAILURES = 150, GAP_MS = 200;
  const said = document.getElementById("connection");
  const sent = new Map();
  let clock = 0, answered = Date.now();
  const time = (ms) => `${new Date(ms + clock).toISOString().slice(11, 19)} UTC`;
  const sleep = (ms) => new Promise((done) => { setTimeout(done, ms); });
  const say = (text) => { if (said.textContent !== text) said.textContent = text; said.hidden = !text; };

  /** What is replaced as a whole, if it has changed. */
  const blocks = (page) => [...page.querySelectorAll("body > header, body > nav, main > section, body > footer")];
  const name = (block) => block.id || block.tagName;
  const isSelected = (block) => { const chosen = getSelection(); return chosen && !chosen.isCollapsed && chosen.containsNode(block, true); };
  const details = (block) => new Map([...block.querySelectorAll("details")].map((each, number) => [each.id || each.dataset.key || `#${number}`, each]));

  /** Keeps what a person opened and closed, where the focus is, and how far a bar was scrolled. */
  const keep = (old, block) => {
    const fresh = details(block);
    let focused = null;
    for (const [key, each] of details(old)) {
      const same = fresh.get(key);
      if (!same) continue;
      same.open = each.open;
      if (document.activeElement === each.firstElementChild) focused = same.firstElementChild;
    }
    const left = old.firstElementChild?.scrollLeft;
    old.replaceWith(block);
    if (left) block.firstElementChild.scrollLeft = left;
    focused?.focus({ preventScroll: true });
  };
  const show = (page) => {
    const seen = [...document.querySelectorAll("main [id]")].find((each) => each.getBoundingClientRect().top >= 0 && each.offsetHeight);
    const before = scrollY && seen ? seen.getBoundingClientRect().top : null;
    const there = new Map(blocks(document).map((block) => [name(block), block]));
    let last = null;
    for (const block of blocks(page)) {
      const key = name(block), html = block.outerHTML, old = there.get(key);
      const isKept = old && (sent.get(key) === html || isSelected(old));
      if (!isKept) {
        sent.set(key, html);
        if (old) keep(old, block);
        else if (last) last.after(block);
        else document.querySelector("main").prepend(block);
      }
      if (block.tagName === "SECTION") last = isKept ? old : block;
      there.delete(key);
    }
    for (const [key, block] of there) { block.remove(); sent.delete(key); }
    document.title = page.title;
    dispatchEvent(new Event("updated"));
    const after = before === null ? null : document.getElementById(seen.id);
    if (after) scrollBy({ top: after.getBoundingClientRect().top - before, behavior: "instant" });
  };

  const span = (ms) => {
    const seconds = Math.max(0, Math.round(ms / 1000)), minutes = Math.floor(seconds / 60), two = (number) => String(number).padStart(2, "0");
    if (minutes < 1) return `${seconds} s`;
    return minutes < 60 ? `${minutes} min ${two(seconds % 60)} s` : `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
  };
  const tick = () => {
    const now = document.getElementById("now");
    if (!now || isSelected(now)) return;
    for (const each of now.querySelectorAll("[data-since]")) each.textContent = span(Date.now() + clock - Number(each.dataset.since));
  };

  const ask = async (seen) => {
    const answer = await fetch(`/live?seen=${seen}`);
    if (!answer.ok) throw new Error(await answer.text());
    return answer.json();
  };
  const visible = () => new Promise((done) => { document.addEventListener("visibilitychange", done, { once: true }); });
  /** Asks again and again; the server answers when there is something new, and every few seconds. */
  const follow = async () => {
    const ticking = setInterval(tick, 1000);
    for (let seen = 0, failures = 0; failures < MAX_FAILURES;) {
      if (document.hidden) await visible();
      const update = await ask(seen).catch(() => null);
      if (update === null) {
        failures += 1;
        say(`No answer since ${time(answered)}: the command that serves this page has ended, or cannot be reached.`);
        await sleep(PAUSE_MS);
        continue;
      }
      [seen, failures, answered, clock] = [update.version, 0, Date.now(), update.time - Date.now()];
      if (update.page !== null) show(new DOMParser().parseFromString(update.page, "text/html"));
      say(update.trouble ?? update.ended ?? "");
      tick();
      if (update.ended !== null) break;
      await sleep(GAP_MS);
    }
    clearInterval(ticking);
  };
  follow();
})();
