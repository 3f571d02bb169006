"use strict";
(() => {
  const KINDS = ["root", "java", "python"], HEIGHT = 18, NARROWEST = 4, LEGIBLE = 16, EVERYTHING = -1;

  /** Draws in a box; returns what takes the data that is drawn. */
  const flame = (box) => {
    const [bars, said, choice, input, whole] = [".bars", ".said", "select", "input", "[data-whole]"].map((selector) => box.querySelector(selector));
    const label = (node) => data.labels[data.nodes[node]];
    const isWait = (node) => { let at = node; while (data.parents[at] >= 0) at = data.parents[at]; return label(at)[1] === "waiting"; };
    const name = (node) => { const [, text, , line] = label(node); return line ? `${text}:${line}` : text; };
    const short = (node) => (label(node)[0] === 1 ? name(node).replace(/^(?:[a-z_][\w]*\.)+(?=[A-Z])/, "") : name(node));
    let data = null, size, children;
    let view = 0, top = EVERYTHING, counts, times, other = null, focused = null, sought = "", places = new Map();
    /** Samples and time of each node with all that it calls, in some parts. */
    const sums = (numbers) => {
      const samples = new Float64Array(size + 1), ms = new Float64Array(size + 1);
      for (const number of numbers) {
        const [nodes, some, spent] = data.parts[number];
        nodes.forEach((node, index) => { samples[node] += some[index]; ms[node] += spent[index]; });
      }
      for (let node = size - 1; node >= 0; node -= 1) {
        const parent = data.parents[node] < 0 ? size : data.parents[node];
        samples[parent] += samples[node]; ms[parent] += ms[node];
      }
      return [samples, ms];
    };
    /** Takes the numbers of the chosen view, and of the run that it is compared with. */
    const add = () => {
      const [, parts, compared] = data.views[view];
      [counts, times] = sums(parts || data.parts.keys());
      other = compared ? sums(compared) : null;
    };
    /** What a node calls, the longest first. */
    const calls = (node) => children[node].filter((each) => counts[each] >= data.least).sort((one, other) => times[other] - times[one]);
    const percent = (part, all) => { const share = part / all * 100; return `${share < 10 ? share.toFixed(1) : Math.round(share)} %`; };
    /** The ends between which a count is in 19 of 20 cases, as `counts.interval` has it. */
    const interval = (count) => {
      const z = 1.959964, above = count + 1;
      return [Math.max(0, count * (1 - 1 / (9 * count) - z / (3 * Math.sqrt(count))) ** 3), above * (1 - 1 / (9 * above) + z / (3 * Math.sqrt(above))) ** 3];
    };
    const time = (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : ms < 60000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.floor(ms / 60000)} min ${Math.round(ms / 1000) % 60} s`);
    /** The ends between which the time of a node is; of no samples, that of a few. */
    const span = (count, ms, each) => interval(count).map((end) => end * (count ? ms / count : each));
    /** How the time of a node differs from the other run, if beyond the noise of both counts: from -1 to 1, more is more. */
    const change = (node) => {
      const each = times[size] / (counts[size] || 1), [low, high] = span(counts[node], times[node], each);
      const [otherLow, otherHigh] = span(other[0][node], other[1][node], each);
      const least = data.worth_naming * Math.max(times[size], other[1][size]);
      if ((low <= otherHigh && otherLow <= high) || Math.abs(times[node] - other[1][node]) < least) return 0;
      const more = (times[node] - other[1][node]) / Math.max(times[node], other[1][node]);
      return data.views[view][3] ? -more : more;
    };
    const compared = (node) => {
      if (!other) return "";
      const [samples, ms] = [other[0][node], other[1][node]], more = change(node);
      const verdict = more > 0 ? "more now" : more < 0 ? "less now" : "no difference beyond the noise";
      return `; in the ${data.views[view][3] ? "later" : "earlier"} run ${percent(ms, other[1][size] || 1)}, ${samples.toLocaleString("en")} samples, ${time(ms)}: ${verdict}`;
    };
    const coloured = (node) => { const more = change(node); return more > 0 ? " grew" : more < 0 ? " shrank" : " same"; };
    const about = (node) => {
      const [, text, file, line, isOwn] = label(node), [low, high] = interval(counts[node]), each = times[node] / counts[node];
      const place = file ? ` in ${file}${line ? `:${line}` : ""}` : "";
      return `${text}${place}${isOwn ? " (your program)" : ""}: ${percent(times[node], times[size])} (${percent(low * each, times[size])} to ${percent(high * each, times[size])}), ${counts[node].toLocaleString("en")} samples, ${time(times[node])}${compared(node)}`;
    };
    const matches = (node) => sought !== "" && `${name(node)} ${label(node)[2]}`.toLowerCase().includes(sought);
    /** The samples with a match, each counted once, and their time. */
    const found = (node) => children[node].reduce(([samples, ms], each) => {
      const [more, longer] = counts[each] < data.least ? [0, 0] : matches(each) ? [counts[each], times[each]] : found(each);
      return [samples + more, ms + longer];
    }, [0, 0]);

    const bar = (node, left, width, depth, level) => {
      const [kind, , , , isOwn] = label(node), element = document.createElement("div");
      element.className = `${KINDS[kind]}${isOwn ? " own" : ""}${isWait(node) ? " waits" : ""}${other ? coloured(node) : ""}${level < 0 ? " above" : ""}${matches(node) ? " match" : ""}`;
      element.style.cssText = `left:${left * 100}%;width:${width * 100}%;top:${depth * HEIGHT}px`;
      if (other) element.style.setProperty("--change", Math.round(15 + 45 * Math.abs(change(node))));
      element.textContent = width * bars.clientWidth < LEGIBLE ? "" : short(node);
      element.title = about(node);
      element.tabIndex = -1;
      element.dataset.node = node;
      element.setAttribute("role", "treeitem");
      element.setAttribute("aria-level", depth + 1);
      element.setAttribute("aria-label", about(node));
      places.set(node, element);
      return element;
    };
    const draw = () => {
      places = new Map();
      const above = [], drawn = [], least = NARROWEST / Math.max(bars.clientWidth, 300);
      for (let at = top; at >= 0; at = data.parents[at]) above.unshift(at);
      above.forEach((node, depth) => drawn.push(bar(node, 0, 1, depth, depth - above.length + 1)));
      let depth = above.length, row = [[top === EVERYTHING ? size : top, 0]];
      const all = times[row[0][0]] || 1;
      for (; row.length; depth += 1) {
        const next = [];
        for (const [caller, start] of row) {
          let left = start;
          for (const node of calls(caller)) {
            const width = times[node] / all;
            if (width >= least) { drawn.push(bar(node, left, width, depth, 1)); next.push([node, left]); }
            left += width;
          }
        }
        row = next;
      }
      bars.replaceChildren(...drawn);
      bars.style.height = `${(depth - 1) * HEIGHT}px`;
      bars.classList.toggle("searched", sought !== "");
      whole.hidden = top === EVERYTHING;
      const first = places.get(focused) || drawn[0];
      if (first) first.tabIndex = 0;
      say();
    };
    const total = () => `${counts[size].toLocaleString("en")} samples, ${time(times[size])} of threads`;
    const say = () => {
      if (sought) {
        const [samples, ms] = found(size);
        said.textContent = samples ? `“${input.value}” is in ${percent(ms, times[size])} of the time, ${samples.toLocaleString("en")} samples.` : `No function with “${input.value}” has ${data.least} samples.`;
      } else if (places.has(focused)) said.textContent = about(focused);
      else said.textContent = `${total()}.`;
    };
    const zoom = (node) => { top = node; focused = node === EVERYTHING ? focused : node; draw(); };
    const focus = (node) => {
      const element = places.get(node);
      if (!element) return;
      bars.querySelectorAll('[tabindex="0"]').forEach((each) => { each.tabIndex = -1; });
      focused = node;
      element.tabIndex = 0;
      element.focus({ preventScroll: false });
    };
    /** Takes the data, and draws it. */
    const take = (fresh) => {
      data = JSON.parse(fresh.textContent);
      size = data.nodes.length;
      children = Array.from({ length: size + 1 }, () => []);
      data.parents.forEach((parent, node) => children[parent < 0 ? size : parent].push(node));
      choice.replaceChildren(...data.views.map(([text], number) => new Option(text, number)));
      add();
      draw();
    };
    const beside = (node, step) => {
      const row = calls(data.parents[node] < 0 ? size : data.parents[node]).filter((each) => places.has(each));
      return row[row.indexOf(node) + step];
    };
    const KEYS = {
      ArrowDown: (node) => focus(calls(node).find((each) => places.has(each))),
      ArrowUp: (node) => focus(data.parents[node]),
      ArrowLeft: (node) => focus(beside(node, -1)),
      ArrowRight: (node) => focus(beside(node, 1)),
      Home: () => focus(calls(size)[0]),
      Enter: (node) => { zoom(node); focus(node); },
      " ": (node) => { zoom(node); focus(node); },
      Escape: (node) => { zoom(EVERYTHING); focus(node); },
    };
    bars.addEventListener("keydown", (event) => {
      const element = event.target.closest("[data-node]"), act = KEYS[event.key];
      if (!element || !act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act(Number(element.dataset.node));
    });
    bars.addEventListener("click", (event) => {
      const element = event.target.closest("[data-node]");
      if (!element) return;
      const node = Number(element.dataset.node);
      zoom(node === top ? EVERYTHING : node);
      focus(node);
    });
    bars.addEventListener("focusin", (event) => { focused = Number(event.target.dataset.node); if (!sought) say(); });
    bars.addEventListener("mouseover", (event) => { const element = event.target.closest("[data-node]"); if (element && !sought) said.textContent = about(Number(element.dataset.node)); });
    bars.addEventListener("mouseleave", say);
    whole.addEventListener("click", () => zoom(EVERYTHING));
    input.addEventListener("input", () => { sought = input.value.trim().toLowerCase(); draw(); });
    choice.addEventListener("change", () => { view = Number(choice.value); top = EVERYTHING; focused = null; add(); draw(); });
    addEventListener("resize", () => { if (box.isConnected) draw(); });
    return take;
  };

  let drawn = null;
  const start = () => {
    const box = document.querySelector("[data-flame]"), data = document.getElementById("stack-data");
    if (!box || !data || box === drawn) return;
    drawn = box;
    flame(box)(data);
  };
  addEventListener("updated", start);
  start();
})();
