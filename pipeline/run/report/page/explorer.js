"use strict";
// The query explorer. Every text comes from the page's data and is set as text, never as HTML.
(async () => {
  const at = (id) => document.getElementById(id);
  if (!at("search")) return; // nothing is scored
  if (!("DecompressionStream" in window)) {
    at("count").textContent = "Searching the queries needs a newer browser.";
    at("count").hidden = false;
    return;
  }
  const data = await unpacked(at("data").textContent);

  // The data is JSON as gzip in base64.
  async function unpacked(base64) {
    const text = atob(base64);
    const bytes = new Uint8Array(text.length);
    for (let place = 0; place < text.length; place += 1) bytes[place] = text.charCodeAt(place);
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  }

  const STEP = 30; // queries listed at once
  const ADDRESS = "#queries?";
  const title = (system) => data.systems[system].title;
  const state = { way: "t2i", a: data.default[0], b: data.default[1], listed: STEP, found: [], chosen: null };

  const rank = (query, system) => data.queries[state.way].ranks[system][query.number];
  const rankOf = { a: (query) => rank(query, state.a), b: (query) => rank(query, state.b) };
  const gain = (query) => 1 / rankOf.b(query) - 1 / rankOf.a(query); // from 12 to 1 is much, from 45 to 37 is little
  const FILTERS = {
    all: ["all", () => true],
    first: ["B finds it first", (query) => rankOf.b(query) === 1],
    later: ["B does not find it first", (query) => rankOf.b(query) > 1],
    top5: ["B finds it among the first 5", (query) => rankOf.b(query) <= 5],
    top10: ["B finds it among the first 10", (query) => rankOf.b(query) <= 10],
    missed: [`B misses it: not among its first ${data.top}`, (query) => rankOf.b(query) > data.top],
    gained: ["better under B than under A", (query) => gain(query) > 0],
    lost: ["worse under B than under A", (query) => gain(query) < 0],
    ...(data.whole ? {} : { kept: ["candidates are kept", (query) => query.answers !== null] }),
    ...(data.queries.t2i.right.some((files) => files.length > 1)
      ? { several: ["several answers are right", (query) => query.right.length > 1] } : {}),
  };
  // The first is what the page opens with.
  const SORTS = {
    gain: ["rise of 1/rank from A to B", (one, other) => gain(other) - gain(one)],
    drop: ["fall of 1/rank from A to B", (one, other) => gain(one) - gain(other)],
    worst: ["rank under B, worst first", (one, other) => rankOf.b(other) - rankOf.b(one)],
    kept: [data.whole ? "the data set" : "the data set, kept candidates first",
      (one, other) => (one.answers === null) - (other.answers === null)],
  };

  // The queries whose candidates are kept.
  const answersOf = (way) => new Map(data[way].map((query) => [query.number, { ...query, right: new Set(query.right) }]));
  const answers = { t2i: answersOf("t2i"), i2t: answersOf("i2t") };

  // Each query once: its number, what it is called in the list and above its answers, the words that find it, the
  // languages of its captions, what is right (numbers of files or captions), and the files that are right or that it is.
  const shownText = (text) => (text.trim() ? text : "(empty caption)");
  const captionsOf = data.files.map(() => []);
  data.queries.t2i.right.forEach((files, caption) => files.forEach((file) => captionsOf[file].push(caption)));
  const languageOf = (caption) => data.queries.t2i.languages?.[caption] ?? null;
  const queries = {
    t2i: data.queries.t2i.texts.map((text, number) => ({
      number,
      answers: answers.t2i.get(number) ?? null,
      title: shownText(text),
      label: shownText(text),
      words: text.toLowerCase(),
      languages: [languageOf(number)],
      right: data.queries.t2i.right[number],
      files: data.queries.t2i.right[number].map((file) => data.files[file]),
    })),
    i2t: data.queries.i2t.files.map((place, number) => {
      const texts = captionsOf[place].map((caption) => data.queries.t2i.texts[caption]);
      return {
        number,
        answers: answers.i2t.get(number) ?? null,
        title: data.files[place],
        label: texts[0]?.trim() ? texts[0] : data.files[place],
        words: texts.join(" ").toLowerCase(),
        languages: captionsOf[place].map(languageOf),
        right: captionsOf[place],
        files: [data.files[place]],
      };
    }),
  };

  function make(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== null) node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
  }

  // A name that may break after a plus sign: Region+Grid, and not VSE+2AD.
  const breakable = (name) => name.split(/(?<=\+)(?=\p{L})/u).flatMap((part) => [part, make("wbr", {})]);

  const listed = () => [...at("found").querySelectorAll("button")];

  const shownRank = (rank) => (Number.isInteger(rank) ? String(rank) : rank.toFixed(1));

  const compared = () => (state.a === state.b ? [state.b] : [state.a, state.b]);

  const letter = (system) => (system === state.a && state.a !== state.b ? "A" : "B");

  const ranks = (query) => compared().map((system) => `${letter(system)}: ${shownRank(rank(query, system))}`).join(", ");

  const shownSimilarity = (value) => (value === null ? "–" : value.toFixed(3).replace("-", "−")); // a reranked system has an order alone

  const tag = (language) => (language === null ? null : data.languages[language]);

  function photograph(index, size) {
    const image = data.images[index];
    if (image.thumb === null) {
      return make("span", { class: `gone ${size}`, role: "img", "aria-label": image.alt }, "not readable any more");
    }
    return make("img", { src: image.thumb, alt: image.alt, class: size, title: image.file });
  }

  function mark(right, yes, no) {
    return make("span", { class: right ? "mark right" : "mark wrong" },
      make("span", { "aria-hidden": "true" }, right ? "✓" : "✗"),
      make("span", { class: right && state.way === "t2i" ? "" : "hidden" }, ` ${right ? yes : no}`));
  }

  function search() {
    const words = at("words").value.toLowerCase().split(/\s+/).filter(Boolean);
    const keep = FILTERS[at("filter").value][1];
    const language = data.languages.indexOf(at("language").value);
    state.found = queries[state.way].filter((query) => keep(query) && words.every((word) => query.words.includes(word))
      && (language < 0 || query.languages.includes(language)));
    state.found.sort((one, other) => SORTS[at("sort").value][1](one, other) || one.number - other.number);
    state.listed = STEP;
    list();
    const count = state.found.length;
    const { before } = data.systems[state.b];
    const tables = [...document.querySelectorAll("form.pair-of-two")].map((form) => at(form.dataset.pairs));
    const differences = tables.map((table) => differenceOf(table, data.systems[state.a].name, data.systems[state.b].name));
    const difference = differences.find((text) => text !== null) ?? "";
    at("difference").textContent = difference && `${difference}.`;
    at("difference").hidden = !difference;
    at("before").hidden = before === null || before === state.a;
    at("count").textContent = count === 0 ? "No query fits. Take a word away, or show all."
      : `${count.toLocaleString("en")} ${count === 1 ? "query fits" : "queries fit"}.`;
    at("detail").hidden = count === 0;
    if (count === 0) state.chosen = null;
    else show(state.found.includes(state.chosen) ? state.chosen : state.found[0]);
  }

  // The filters, the systems and the query are in the address, so that it can be sent to somebody.
  function keepAddress() {
    const parts = { way: state.way, a: data.systems[state.a].name, b: data.systems[state.b].name,
      filter: at("filter").value, sort: at("sort").value, words: at("words").value };
    if (at("language").value) parts.language = at("language").value;
    if (state.chosen !== null) parts.query = state.chosen.number;
    try {
      history.replaceState(null, "", ADDRESS + new URLSearchParams(parts));
    } catch { /* some browsers allow no addresses within a file */ }
  }

  function readAddress() {
    if (!location.hash.startsWith(ADDRESS)) return false;
    const parts = new URLSearchParams(location.hash.slice(ADDRESS.length));
    if (["t2i", "i2t"].includes(parts.get("way"))) state.way = parts.get("way");
    document.querySelector(`input[name=way][value=${state.way}]`).checked = true;
    for (const side of ["a", "b"]) {
      const system = data.systems.findIndex((each) => each.name === parts.get(side));
      if (system >= 0) state[side] = system;
      at(`system-${side}`).value = state[side];
    }
    at("filter").value = Object.hasOwn(FILTERS, parts.get("filter")) ? parts.get("filter") : "all";
    at("sort").value = Object.hasOwn(SORTS, parts.get("sort")) ? parts.get("sort") : "gain";
    at("words").value = parts.get("words") ?? "";
    at("language").value = data.languages.includes(parts.get("language")) ? parts.get("language") : "";
    state.chosen = queries[state.way][Number(parts.get("query") ?? NaN)] ?? null;
    search();
    at("explorer").scrollIntoView();
    return true;
  }

  function list() {
    at("found").replaceChildren(...state.found.slice(0, state.listed).map((query) => {
      const button = make("button", { type: "button", "data-number": query.number },
        ...(state.way === "i2t" && query.answers ? [photograph(query.answers.query, "small")] : []),
        make("span", { class: "title" },
          make("span", { dir: "auto", lang: tag(query.languages[0] ?? null) }, query.label),
          make("span", { class: "rank" }, "rank " + ranks(query))));
      button.addEventListener("click", () => open(query));
      return make("li", {}, button);
    }));
    at("more").hidden = state.found.length <= state.listed;
    markChosen();
  }

  function markChosen() {
    const buttons = listed();
    for (const button of buttons) {
      const chosen = state.chosen !== null && Number(button.dataset.number) === state.chosen.number;
      if (chosen) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    }
    stop(buttons.find((button) => button.hasAttribute("aria-current")) ?? buttons[0]);
  }

  // The whole list is one stop of the Tab key: the button with the focus, or the query that is shown.
  function stop(at) {
    for (const button of listed()) button.tabIndex = button === at ? 0 : -1;
  }

  function open(query) {
    show(query);
    keepAddress();
    at("announcement").textContent = `Shown: ${query.title}. Rank of the ground truth: ${ranks(query)}.`;
    if (matchMedia("(max-width: 50rem)").matches) at("detail-title").focus();
  }

  function show(query) {
    state.chosen = query;
    markChosen();
    at("detail-title").textContent = query.title;
    const language = state.way === "t2i" ? tag(query.languages[0]) : null;
    if (language) at("detail-title").lang = language;
    else at("detail-title").removeAttribute("lang");
    const found = query.answers ? compared().map((system) => answer(query, system))
      : [make("p", { class: "note" }, "Its candidates are not kept on this page.")];
    at("answer").replaceChildren(summary(query), ...found);
  }

  function summary(query) {
    const kept = query.answers;
    const head = make("tr", {}, make("th", { scope: "col" }, "System"), make("th", { scope: "col" }, "Rank"),
      ...(kept ? [make("th", { scope: "col" }, "Similarity")] : []));
    const others = [...data.systems.keys()].filter((index) => !compared().includes(index));
    const rows = [...compared(), ...others].map((index) => make("tr", compared().includes(index) ? { class: "compared" } : {},
      make("th", { scope: "row" }, compared().includes(index) ? `${letter(index)}: ` : "", ...breakable(title(index))),
      make("td", {}, shownRank(rank(query, index))), ...(kept ? [make("td", {}, shownSimilarity(kept.own[index]))] : [])));
    const what = kept ? "Rank and similarity" : "Rank";
    const best = {
      t2i: query.files.length > 1 ? "the best right image" : "its image",
      i2t: data.judged ? "the best right caption" : "the best of its captions",
    };
    const photographs = !kept ? [] : state.way === "i2t" ? [photograph(kept.query, "large")]
      : [...kept.right].map((image) => photograph(image, kept.right.size > 1 ? "medium" : "large"));
    const names = query.files.slice(0, data.top).flatMap((file, index) => [index ? ", " : "", make("bdi", {}, file)]);
    const further = query.files.length - data.top;
    return make("div", { class: "summary" },
      make("figure", {}, ...photographs, make("figcaption", {}, state.way === "t2i" ? "The ground truth: " : "The query: ",
        ...names, further > 0 ? ` and ${further} more` : "")),
      make("table", { class: "numbers" },
        make("caption", {}, `${what} of ${best[state.way]}`),
        make("thead", {}, head), make("tbody", {}, ...rows)));
  }

  function answer(query, system) {
    const { top, right: relevant, similarity: similarities } = query.answers;
    const entries = top[system].map((candidate, place) => {
      const right = relevant.has(candidate);
      const similarity = make("span", { class: "similarity" }, shownSimilarity(similarities[system][place]));
      if (state.way === "t2i") {
        return make("li", { class: right ? "right" : "" }, photograph(candidate, "medium"),
          mark(right, "ground truth", "not the ground truth"), similarity,
          make("span", { class: "under", dir: "auto" }, data.images[candidate].alt));
      }
      return make("li", { class: right ? "right" : "" }, mark(right, data.judged ? "right:" : "its own:",
        data.judged ? "not right:" : "another image's:"), similarity,
        make("span", { dir: "auto", lang: tag(data.captions[candidate].language) }, data.captions[candidate].text));
    });
    return make("section", {},
      make("h4", {}, `${letter(system)}: ${title(system)}. The first ${entries.length}, ground truth at rank `
        + shownRank(rank(query, system))),
      make("ol", { class: state.way === "t2i" ? "images" : "texts" }, ...entries));
  }

  // A spreadsheet takes what begins with = + - @ as a formula; names of systems are the only texts here.
  function ranksAsText() {
    const cell = (text) => `"${(/^[=+\-@\t\r]/.test(text) ? "'" : "") + text.replaceAll('"', '""')}"`;
    const { ids, ranks: bySystem } = data.queries[state.way];
    const head = [state.way === "t2i" ? "caption_id" : "image_id", ...data.systems.map((system) => cell(system.name))];
    const rows = ids.map((id, index) => [id, ...bySystem.map((of) => of[index])].join(","));
    return [head.join(","), ...rows, ""].join("\n");
  }

  at("download").addEventListener("click", () => {
    const address = URL.createObjectURL(new Blob([ranksAsText()], { type: "text/csv" }));
    make("a", { href: address, download: `ranks-${state.way}.csv` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  });

  // Arrow keys move along the list; Enter and space open a query.
  at("found").addEventListener("keydown", (event) => {
    const buttons = listed();
    const here = buttons.indexOf(document.activeElement);
    const next = buttons[{ ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: buttons.length - 1 }[event.key]];
    if (next) {
      event.preventDefault();
      next.focus();
    }
  });

  at("found").addEventListener("focusin", (event) => stop(event.target));

  at("search").addEventListener("submit", (event) => event.preventDefault());
  function changed() {
    search();
    keepAddress();
  }
  at("words").addEventListener("input", changed);
  at("language").addEventListener("change", changed);
  at("filter").addEventListener("change", changed);
  at("sort").addEventListener("change", () => {
    state.chosen = null; // the first in the new order is shown
    changed();
  });
  for (const side of ["a", "b"]) {
    at(`system-${side}`).replaceChildren(...data.systems.map((system, index) =>
      make("option", { value: index }, system.title)));
    at(`system-${side}`).value = state[side];
    at(`system-${side}`).addEventListener("change", (event) => {
      state[side] = Number(event.target.value);
      changed();
    });
  }
  at("before").addEventListener("click", () => {
    state.a = data.systems[state.b].before;
    at("system-a").value = state.a;
    changed();
  });
  for (const radio of document.querySelectorAll("input[name=way]")) {
    radio.addEventListener("change", () => {
      state.way = radio.value;
      state.chosen = null;
      changed();
    });
  }
  at("more").addEventListener("click", () => {
    const next = state.listed;
    state.listed += STEP;
    list();
    listed()[next].focus();
  });

  for (const [id, choices] of [["filter", FILTERS], ["sort", SORTS]]) {
    at(id).replaceChildren(...Object.entries(choices).map(([name, [text]]) => make("option", { value: name }, text)));
  }
  at("language").replaceChildren(make("option", { value: "" }, "all languages"),
    ...data.languages.map((language) => make("option", { value: language }, language)));
  at("languages").hidden = data.languages.length < 2;
  for (const id of ["search", "count", "stage"]) at(id).hidden = false;
  addEventListener("hashchange", readAddress);
  if (!readAddress()) search();
})();
