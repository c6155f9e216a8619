"use strict";
// A board: the tables sort and are filtered, two systems are compared, a system is marked in all plots.
(async () => {
  const at = (id) => document.getElementById(id);
  if (!("DecompressionStream" in window)) {
    at("counts").textContent = "Comparing two systems needs a newer browser.";
    return;
  }

  // What is stored as gzip in base64.
  function unpacked(id) {
    const text = atob(at(id).textContent);
    const bytes = new Uint8Array(text.length);
    for (let place = 0; place < text.length; place += 1) bytes[place] = text.charCodeAt(place);
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
  }

  const { level, names, tasks } = await unpacked("data").json();
  const hasLess = tasks.some((task) => task.less);
  const HIGHER = hasLess ? "better" : "higher";
  const LOWER = hasLess ? "worse" : "lower";
  const UNKNOWN = "cannot tell";

  // Each task: where a system is in its list, and in which row of its plot; where its codes begin.
  let pairsBefore = 0;
  for (const task of tasks) {
    const count = task.systems.length;
    task.placeOf = new Map(task.systems.map((system, place) => [system, place]));
    task.rowOf = new Map(task.order.map((place, row) => [task.systems[place], row]));
    task.pairs = count * (count - 1) / 2;
    task.codesFrom = 2 * pairsBefore;
    pairsBefore += task.pairs;
  }

  // --- numbers as text ---

  // As the other forms of a board round: halves to even.
  const even = (digits) => new Intl.NumberFormat("en-US", { ...digits, roundingMode: "halfEven" });
  const decimals = [0, 1].map((digits) => even({ minimumFractionDigits: digits, maximumFractionDigits: digits }));
  const twoDigits = even({ maximumSignificantDigits: 2 });
  const number = (value, digits = 1) => decimals[digits].format(value).replace("-", "−");
  const signed = (value) => {
    const text = number(value);
    return value > 0 && /[1-9]/.test(text) ? `+${text}` : text.replace(/^−(?=[0.,]*$)/, "");
  };
  // A chance with two digits; one as small as the test can give as "< 0.001".
  function chance(p, resolution) {
    if (p <= resolution * (1 + 1e-9) || p < 0.0001) {
      const least = Math.max(p, 0.0001);
      const power = 10 ** Math.floor(Math.log10(least * (1 + 1e-9)));
      const bound = Math.ceil(least / power * (1 - 1e-9)) * power;
      if (bound < 1) return `< ${Number(bound.toPrecision(1))}`;
    }
    return twoDigits.format(p);
  }
  const ranks = (task, place) => task.best[place] === task.worst[place] ? `${task.best[place]}` : `${task.best[place]}–${task.worst[place]}`;
  function interval(task, place) {
    if (task.low[place] === null) return "";
    return `[${number(task.low[place])}, ${number(task.high[place])}]`;
  }

  function element(tag, text = "", properties = {}) {
    const made = document.createElement(tag);
    made.textContent = text;
    return Object.assign(made, properties);
  }

  // --- tables that sort ---

  const valueOf = (cell) => {
    const text = cell.dataset.value ?? cell.textContent.trim();
    return text === "" || Number.isNaN(Number(text)) ? text : Number(text);
  };
  // Numbers by size, text by letters; what is missing comes last in both directions.
  function compared(one, other, sign) {
    if (one === "" || other === "") return (one === "") - (other === "");
    if (typeof one === "number" && typeof other === "number") return sign * (one - other);
    return sign * String(one).localeCompare(String(other), "en", { numeric: true });
  }
  function sort(table, heading) {
    const order = heading.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
    for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const rows = [...table.tBodies[0].rows].map((row) => [valueOf(row.cells[heading.cellIndex]), row]);
    rows.sort(([one], [other]) => compared(one, other, sign));
    table.tBodies[0].append(...rows.map(([, row]) => row));
  }
  for (const table of document.querySelectorAll("table.sortable")) {
    for (const heading of table.tHead.rows[0].cells) {
      const button = element("button", "", { type: "button" });
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => sort(table, heading));
    }
  }

  // --- the filter ---

  const filter = at("filter");
  const most = [...filter.querySelectorAll(".most")];
  const tables = [at("systems"), at("unplaced")].filter(Boolean);
  const UNITS = { "": 1, k: 1e3, m: 1e6, b: 1e9, g: 1e9 };
  // "400M", "1.5 B", "4e8"; null for nothing that is a number.
  function limit(text) {
    const parts = text.trim().replaceAll(",", "").match(/^(\d*\.?\d+(?:e\d+)?)\s*([kmbg]?)$/i);
    return parts ? Number(parts[1]) * UNITS[parts[2].toLowerCase()] : null;
  }
  function show() {
    const words = at("words").value.toLowerCase().split(/\s+/).filter(Boolean);
    const limits = most.map((input) => [input.value.trim(), limit(input.value), Number(input.dataset.fact)]).filter(([text]) => text);
    const wrong = limits.find(([, value]) => value === null);
    let shown = 0;
    for (const table of tables) {
      const firstFact = Number(table.dataset.facts);
      for (const row of table.tBodies[0].rows) {
        const name = names[row.dataset.system].toLowerCase();
        row.hidden = !words.every((word) => name.includes(word)) || !limits.every(([, value, fact]) => {
          const cell = row.cells[firstFact + fact].dataset.value;
          return value === null || (cell !== "" && Number(cell) <= value);
        });
        shown += !row.hidden;
      }
    }
    at("shown").textContent = wrong ? `“${wrong[0]}” is not a number: write 400M, 1.5B or 12.`
      : shown === names.length ? "" : `${shown} of ${names.length} systems`;
    drawCloud();
  }
  filter.addEventListener("submit", (event) => event.preventDefault());
  filter.addEventListener("input", show);
  filter.hidden = false;

  // --- a system that is marked in all plots, and the two that are compared ---

  const chosen = { one: null, two: null };
  let pointed = null;
  const plots = [...document.querySelectorAll("figure.task")].map((figure) => ({
    figure,
    task: tasks[figure.dataset.task],
    said: figure.querySelector(".said"),
    slider: figure.querySelector(".drawn"),
    paths: { row: figure.querySelector(".row"), one: figure.querySelector(".one"), two: figure.querySelector(".two"), at: figure.querySelector(".at") },
  }));

  // A bar as high as its row, of many systems higher, so that it is seen.
  function bar(task, system) {
    const place = task.placeOf.get(system);
    if (place === undefined) return "";
    const height = Math.max(0.76, task.systems.length / 60);
    const top = task.rowOf.get(system) + (1 - height) / 2;
    const length = task.worst[place] - task.best[place] + 1;
    return `M${task.best[place] - 1} ${top}h${length}v${height}h${-length}z`;
  }
  function said(task, system) {
    const place = task.placeOf.get(system);
    if (place === undefined) return `${names[system]}: not measured`;
    return `${names[system]}: ${number(task.values[place])} ${interval(task, place)}, rank ${ranks(task, place)}`;
  }

  // Draw what is marked; only what changes.
  let frame = null;
  function mark() {
    frame ??= requestAnimationFrame(() => {
      frame = null;
      for (const { figure, task, said: line, paths } of plots) {
        const row = task.rowOf.get(pointed);
        paths.row.setAttribute("d", row === undefined ? "" : `M0 ${row}h${task.systems.length}v1h${-task.systems.length}z`);
        paths.at.setAttribute("d", pointed === null || pointed === chosen.one || pointed === chosen.two ? "" : bar(task, pointed));
        paths.one.setAttribute("d", chosen.one === null ? "" : bar(task, chosen.one));
        paths.two.setAttribute("d", chosen.two === null ? "" : bar(task, chosen.two));
        line.textContent = pointed === null ? line.dataset.said : said(task, pointed);
        for (const name of figure.querySelectorAll("[data-system]")) markNode(name);
      }
      for (const dot of document.querySelectorAll("#cloud [data-system]")) markNode(dot);
      for (const row of document.querySelectorAll("tr[data-system]")) markNode(row);
    });
  }
  function markNode(node) {
    const system = Number(node.dataset.system);
    node.classList.toggle("pointed", system === pointed);
    node.classList.toggle("one", system === chosen.one);
    node.classList.toggle("two", system === chosen.two);
  }
  function point(system) {
    if (system === pointed) return;
    pointed = system;
    mark();
  }

  // The first click chooses A, others B; a click on one that is chosen lets it go.
  function choose(system) {
    if (system === chosen.one) {
      chosen.one = null;
    } else if (system === chosen.two) {
      chosen.two = null;
    } else if (chosen.one === null) {
      chosen.one = system;
    } else {
      chosen.two = system;
    }
    compare();
  }

  for (const button of document.querySelectorAll("button.choose")) {
    button.addEventListener("click", () => choose(Number(button.dataset.system)));
  }
  for (const table of tables) {
    const systemOf = (event) => {
      const row = event.target.closest("tbody tr");
      return row && Number(row.dataset.system);
    };
    table.addEventListener("mouseover", (event) => point(systemOf(event)));
    table.addEventListener("mouseleave", () => point(null));
    table.addEventListener("focusin", (event) => point(systemOf(event)));
    table.addEventListener("focusout", () => point(null));
  }

  for (const { task, slider, figure } of plots) {
    const systemAt = (event) => {
      const box = slider.getBoundingClientRect();
      const row = Math.floor((event.clientY - box.top) / box.height * task.order.length);
      return task.systems[task.order[Math.min(Math.max(row, 0), task.order.length - 1)]];
    };
    const plot = figure.querySelector(".plot");
    plot.addEventListener("mousemove", (event) => point(systemAt(event)));
    plot.addEventListener("mouseleave", () => point(null));
    plot.addEventListener("click", (event) => choose(systemAt(event)));
    // By keyboard: up and down along the rows, Enter chooses.
    const last = task.order.length - 1;
    let row = 0;
    const goTo = (next) => {
      row = Math.min(Math.max(next, 0), last);
      const system = task.systems[task.order[row]];
      slider.setAttribute("aria-valuenow", row + 1);
      slider.setAttribute("aria-valuetext", said(task, system));
      point(system);
    };
    const STEPS = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1, PageDown: 10, PageUp: -10, Home: -last, End: last };
    slider.addEventListener("keydown", (event) => {
      if (last < 0) return;
      if (event.key in STEPS) goTo(row + STEPS[event.key]);
      else if (event.key === "Enter" || event.key === " ") choose(task.systems[task.order[row]]);
      else return;
      event.preventDefault();
    });
    slider.addEventListener("focus", () => { if (slider.matches(":focus-visible") && last >= 0) goTo(row); });
    slider.addEventListener("blur", () => point(null));
    const button = figure.querySelector(".open");
    button.hidden = false;
    button.addEventListener("click", () => openTable(task));
  }

  // --- two systems ---

  let codes = null; // of all tasks' chances, unpacked when first needed
  async function codesOfPairs() {
    codes ??= unpacked("codes").arrayBuffer().then((buffer) => {
      const view = new DataView(buffer);
      return (place) => view.getUint16(2 * place, true);
    });
    return codes;
  }
  // B minus A on a task; null where one is not measured.
  function differenceOf(task, one, two, code) {
    const a = task.placeOf.get(one);
    const b = task.placeOf.get(two);
    if (a === undefined || b === undefined) return null;
    const count = task.systems.length;
    const first = Math.min(a, b);
    const pair = first * (2 * count - first - 1) / 2 + Math.abs(a - b) - 1;
    const sign = a < b ? 1 : -1;
    const difference = task.differences ? sign * task.differences[pair] : task.values[b] - task.values[a];
    const p = task.chances[code(task.codesFrom + pair)];
    const adjusted = task.chances[code(task.codesFrom + task.pairs + pair)];
    let word = UNKNOWN;
    if (adjusted < level) word = (difference > 0) === task.less ? LOWER : HIGHER;
    return { difference, p, adjusted, word };
  }

  const NS = "http://www.w3.org/2000/svg";
  // The ranks of both on a task, as two bars on one axis.
  function strip(task, one, two) {
    const drawing = document.createElementNS(NS, "svg");
    drawing.setAttribute("aria-hidden", "true");
    drawing.setAttribute("class", "strip");
    const count = task.systems.length;
    const draw = (tag, attributes) => {
      const node = document.createElementNS(NS, tag);
      for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
      drawing.append(node);
    };
    draw("line", { x1: 0, x2: "100%", y1: 7, y2: 7, class: "axis" });
    for (const [system, kind, y] of [[one, "one", 1], [two, "two", 8]]) {
      const place = task.placeOf.get(system);
      if (place === undefined) continue;
      draw("rect", { x: `${100 * (task.best[place] - 1) / count}%`, width: `${100 * (task.worst[place] - task.best[place] + 1) / count}%`, y, height: 5, rx: 1, class: kind });
    }
    return drawing;
  }

  let asked = 0;
  async function compare() {
    const { one, two } = chosen;
    at("one").value = one ?? "";
    at("other").value = two ?? "";
    for (const button of document.querySelectorAll("button.choose")) {
      const system = Number(button.dataset.system);
      button.setAttribute("aria-pressed", system === one || system === two);
      button.querySelector(".mark").textContent = system === one ? "A" : system === two ? "B" : "";
    }
    mark();
    at("differences").hidden = at("how").hidden = one === null || two === null || one === two;
    if (one === null || two === null || one === two) {
      at("counts").textContent = one === two && one !== null ? "Choose two different systems." : "Choose a second system.";
      return;
    }
    asked += 1;
    const now = asked;
    const code = await codesOfPairs();
    if (now !== asked) return; // others were chosen meanwhile
    const counts = { [HIGHER]: 0, [LOWER]: 0, [UNKNOWN]: 0, missing: 0 };
    const rows = tasks.map((task) => {
      const row = document.createElement("tr");
      const heading = element("th", "", { scope: "row" });
      heading.append(element("span", task.name, { dir: "auto" }), strip(task, one, two));
      row.append(heading);
      const pair = differenceOf(task, one, two, code);
      counts[pair?.word ?? "missing"] += 1;
      if (pair === null) {
        row.append(element("td", "not both measured", { colSpan: 4, className: "missing" }));
        return row;
      }
      row.append(
        element("td", signed(pair.difference)),
        element("td", chance(pair.p, task.resolution)),
        element("td", chance(pair.adjusted, task.resolution)),
        element("td", pair.word, { className: `word ${pair.word === UNKNOWN ? "unknown" : pair.word === HIGHER ? "more" : "less"}` }),
      );
      return row;
    });
    at("differences").querySelector("tbody").replaceChildren(...rows);
    const on = (count) => `${count} task${count === 1 ? "" : "s"}`;
    const missing = counts.missing ? `, not both measured on ${on(counts.missing)}` : "";
    at("counts").replaceChildren(element("bdi", names[two], { className: "two" }), ` (B) is significantly ${HIGHER} than `,
      element("bdi", names[one], { className: "one" }), ` (A) on ${on(counts[HIGHER])}, ${LOWER} on ${on(counts[LOWER])}; cannot tell on ${on(counts[UNKNOWN])}${missing}.`);
  }
  for (const [id, side] of [["one", "one"], ["other", "two"]]) {
    at(id).addEventListener("change", () => {
      chosen[side] = Number(at(id).value);
      compare();
    });
  }
  at("two").addEventListener("submit", (event) => event.preventDefault());
  at("swap").addEventListener("click", () => {
    [chosen.one, chosen.two] = [chosen.two, chosen.one];
    compare();
  });

  // --- the table of a task ---

  function openTable(task) {
    const dialog = at("of-task");
    at("of-task-title").textContent = task.name;
    const heading = at("of-task-metric");
    heading.querySelector("button").textContent = task.metric;
    const table = dialog.querySelector("table");
    for (const cell of table.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
    table.tHead.rows[0].cells[0].setAttribute("aria-sort", "ascending");
    const rows = task.order.map((place, row) => {
      const made = document.createElement("tr");
      made.append(element("td", row + 1), element("th", names[task.systems[place]], { scope: "row", dir: "auto" }));
      const value = element("td", number(task.values[place]));
      value.dataset.value = task.values[place];
      const between = element("td", interval(task, place));
      between.dataset.value = task.low[place] ?? "";
      made.append(value, between, element("td", task.best[place]), element("td", task.worst[place]), element("td", task.letters[place], { className: "letters" }));
      return made;
    });
    table.tBodies[0].replaceChildren(...rows);
    dialog.showModal();
  }

  // --- size and cost: a fact of the systems along their place ---

  function drawCloud() {
    const drawing = at("cloud");
    if (!drawing) return;
    const fact = at("fact").selectedIndex;
    const factName = at("fact").value;
    const column = Number(at("systems").dataset.facts) + fact;
    const points = [];
    for (const row of at("systems").tBodies[0].rows) {
      const value = Number(row.cells[column].dataset.value || NaN);
      if (!row.hidden && value > 0) points.push({ system: Number(row.dataset.system), x: Math.log10(value), y: Number(row.cells[2].dataset.value) });
    }
    const isMean = tasks.length > 1;
    const lessIsBetter = isMean || tasks[0].less;
    const WIDTH = Math.max(300, drawing.clientWidth);
    const [HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [340, 40, 100, 14, 40];
    drawing.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    drawing.replaceChildren();
    const draw = (tag, attributes, text = "") => {
      const node = document.createElementNS(NS, tag);
      for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
      node.textContent = text;
      drawing.append(node);
      return node;
    };
    const what = isMean ? "Mean rank" : tasks[0].metric;
    if (!points.length) {
      at("cloud-caption").textContent = `No system that is shown has ${factName}.`;
      return;
    }
    const span = (values) => {
      const low = Math.min(...values), high = Math.max(...values);
      const room = (high - low || 1) * 0.06;
      return [low - room, high + room];
    };
    const [left, right] = span(points.map(({ x }) => x));
    const [low, high] = span(points.map(({ y }) => y));
    const xOf = (x) => LEFT + (x - left) / (right - left) * (WIDTH - LEFT - RIGHT);
    const yOf = (y) => TOP + (lessIsBetter ? y - low : high - y) / (high - low) * (HEIGHT - TOP - BOTTOM);
    let labelled = -Infinity;
    for (const x of decades(left, right)) {
      draw("line", { x1: xOf(x.at), x2: xOf(x.at), y1: TOP, y2: HEIGHT - BOTTOM, class: "axis" });
      if (xOf(x.at) - labelled < 44) continue;
      labelled = xOf(x.at);
      draw("text", { x: labelled, y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, short(x.value));
    }
    for (const y of steps(Math.max(low, isMean ? 1 : -Infinity), high)) {
      draw("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: yOf(y), y2: yOf(y), class: "axis" });
      draw("text", { x: LEFT - 8, y: yOf(y) + 4, "text-anchor": "end" }, number(y, y % 1 ? 1 : 0));
    }
    draw("text", { x: WIDTH - RIGHT, y: HEIGHT - 6, "text-anchor": "end" }, `${factName} →`);
    draw("text", { x: LEFT + 6, y: TOP + 10 }, `↑ ${what.toLowerCase()}`);
    // The best of those that are no larger.
    points.sort((one, other) => one.x - other.x || (lessIsBetter ? one.y - other.y : other.y - one.y));
    let best = lessIsBetter ? Infinity : -Infinity;
    const front = points.filter(({ y }) => {
      const isBetter = lessIsBetter ? y < best : y > best;
      if (isBetter) best = y;
      return isBetter;
    });
    let path = "";
    for (const { x, y } of front) path += path ? `H${xOf(x).toFixed(1)}V${yOf(y).toFixed(1)}` : `M${xOf(x).toFixed(1)} ${yOf(y).toFixed(1)}`;
    draw("path", { d: path, class: "front" });
    for (const { system, x, y } of points) {
      const dot = draw("circle", { cx: xOf(x).toFixed(1), cy: yOf(y).toFixed(1), r: 5 });
      dot.dataset.system = system;
      dot.append(document.createElementNS(NS, "title"));
      dot.firstChild.textContent = names[system];
    }
    // Names as far as they fit, those of the best first.
    const written = [];
    for (const { system, x, y } of front.reverse()) {
      const label = { left: xOf(x) + 9, top: yOf(y) - 16, right: xOf(x) + 9 + 7 * names[system].length };
      if (written.some((other) => label.left < other.right && other.left < label.right && Math.abs(label.top - other.top) < 15)) continue;
      written.push(label);
      draw("text", { x: label.left, y: label.top + 11, class: "who" }, names[system]);
    }
    at("cloud-caption").textContent = `${what} (up is better) of ${points.length} systems against their ${factName}. ` +
      `Dashed: the best of all systems with this much ${factName} or less. Systems without ${factName} are not drawn.`;
    mark();
  }
  function short(value) {
    for (const [factor, unit] of [[1e9, " B"], [1e6, " M"], [1e3, " k"]]) if (value >= factor) return `${Number((value / factor).toPrecision(2))}${unit}`;
    return String(Number(value.toPrecision(2)));
  }
  // 1, 2, 5 times powers of ten within a range of logarithms.
  function decades(left, right) {
    const found = [];
    for (let power = Math.floor(left); power <= right; power += 1) {
      for (const digit of right - left > 3 ? [1] : [1, 2, 5]) {
        const value = digit * 10 ** power;
        if (Math.log10(value) >= left && Math.log10(value) <= right) found.push({ value, at: Math.log10(value) });
      }
    }
    return found;
  }
  function steps(low, high) {
    const rough = (high - low) / 5;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough);
    const found = [];
    for (let value = Math.ceil(low / step) * step; value <= high; value += step) found.push(Number(value.toPrecision(10)));
    return found;
  }
  if (at("cost")) {
    at("fact").addEventListener("change", drawCloud);
    at("cost").hidden = false;
    const cloud = at("cloud");
    let width = 0;
    new ResizeObserver(() => {
      if (cloud.clientWidth !== width) drawCloud();
      width = cloud.clientWidth;
    }).observe(cloud);
    cloud.addEventListener("mouseover", (event) => point(event.target.dataset.system === undefined ? null : Number(event.target.dataset.system)));
    cloud.addEventListener("mouseleave", () => point(null));
    cloud.addEventListener("click", (event) => { if (event.target.dataset.system !== undefined) choose(Number(event.target.dataset.system)); });
  }

  // To begin with: the first two of the table.
  const first = [...document.querySelectorAll("button.choose")].slice(0, 2).map((button) => Number(button.dataset.system));
  chosen.two = first[0] ?? null;
  chosen.one = first[1] ?? null;
  at("two").hidden = false;
  show();
  compare();
  document.documentElement.dataset.ready = "true";
})();
