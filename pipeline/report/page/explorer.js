"use strict";
// The query explorer. Every text comes from the page's data and is set as text, never as HTML.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  if (!data.systems) return;

  const STEP = 30; // queries listed at once
  const last = data.systems.length - 1;
  const best = data.systems[last];
  const top = Math.max(...data.t2i.concat(data.i2t).map((query) => query.top[last].length));
  const at = (id) => document.getElementById(id);
  const state = { way: "t2i", listed: STEP, found: [], chosen: null };

  const FILTERS = {
    all: ["all", () => true],
    first: [`found first by ${best}`, (query) => query.ranks[last] === 1],
    missed: [`missed by ${best}: not among its first ${top}`, (query) => query.ranks[last] > top],
    gained: [`better under ${best} than under ${data.systems[0]}`, (query) => query.ranks[last] < query.ranks[0]],
    lost: [`worse under ${best} than under ${data.systems[0]}`, (query) => query.ranks[last] > query.ranks[0]],
  };
  if (last === 0) {
    delete FILTERS.gained;
    delete FILTERS.lost;
  }

  // Each query once: its number, its ground truth, and the words that find it.
  const queries = {
    t2i: data.t2i.map((query, number) => ({
      ...query,
      number,
      title: data.captions[query.query].text.trim() ? data.captions[query.query].text : "(empty caption)",
      right: new Set([data.captions[query.query].image]),
      words: data.captions[query.query].text.toLowerCase(),
    })),
    i2t: data.i2t.map((query, number) => {
      const own = data.captions.flatMap((caption, index) => (caption.image === query.query ? [index] : []));
      return {
        ...query,
        number,
        title: data.images[query.query].file,
        right: new Set(own),
        words: own.map((index) => data.captions[index].text).join(" ").toLowerCase(),
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

  const listed = () => [...at("found").querySelectorAll("button")];

  const shownRank = (rank) => (Number.isInteger(rank) ? String(rank) : rank.toFixed(1));

  const ranks = (query) => data.systems.map((name, index) => `${name}: ${shownRank(query.ranks[index])}`).join(", ");

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
    state.found = queries[state.way].filter((query) => keep(query) && words.every((word) => query.words.includes(word)));
    state.listed = STEP;
    list();
    const count = state.found.length;
    at("count").textContent = count === 0 ? "No query fits. Take a word away, or show all."
      : `${count.toLocaleString("en")} ${count === 1 ? "query fits" : "queries fit"}.`;
    at("detail").hidden = count === 0;
    if (count === 0) state.chosen = null;
    else if (!state.found.includes(state.chosen)) show(state.found[0]);
  }

  function list() {
    at("found").replaceChildren(...state.found.slice(0, state.listed).map((query) => {
      const button = make("button", { type: "button", "data-number": query.number },
        ...(state.way === "i2t" ? [photograph(query.query, "small")] : []),
        make("span", { class: "title" },
          make("span", { dir: "auto" }, state.way === "i2t" ? data.images[query.query].alt : query.title),
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
    at("announcement").textContent = `Shown: ${query.title}. Rank of the ground truth: ${ranks(query)}.`;
    try {
      history.replaceState(null, "", `#query=${state.way}-${query.number}`);
    } catch { /* some browsers allow no addresses within a file */ }
    if (matchMedia("(max-width: 50rem)").matches) at("detail-title").focus();
  }

  function show(query) {
    state.chosen = query;
    markChosen();
    at("detail-title").textContent = query.title;
    at("answer").replaceChildren(summary(query), ...data.systems.map((_, index) => answer(query, index)));
  }

  function summary(query) {
    const image = state.way === "t2i" ? [...query.right][0] : query.query;
    const head = make("tr", {}, make("th", { scope: "col" }, "System"), make("th", { scope: "col" }, "Rank"));
    const rows = data.systems.map((name, index) => make("tr", {},
      make("th", { scope: "row" }, name), make("td", {}, shownRank(query.ranks[index]))));
    return make("div", { class: "summary" },
      make("figure", {}, photograph(image, "large"),
        make("figcaption", {}, state.way === "t2i" ? "The ground truth: " : "The query: ",
          make("bdi", {}, data.images[image].file))),
      make("table", { class: "numbers" },
        make("caption", {}, state.way === "t2i" ? "Rank of its image" : "Rank of the best of its captions"),
        make("thead", {}, head), make("tbody", {}, ...rows)));
  }

  function answer(query, index) {
    const entries = query.top[index].map((candidate) => {
      const right = query.right.has(candidate);
      if (state.way === "t2i") {
        return make("li", { class: right ? "right" : "" }, photograph(candidate, "medium"),
          mark(right, "ground truth", "not the ground truth"));
      }
      return make("li", { class: right ? "right" : "" }, mark(right, "its own:", "another image's:"),
        make("span", { dir: "auto" }, data.captions[candidate].text));
    });
    return make("section", {},
      make("h4", {}, `${data.systems[index]}: the first ${entries.length}, ground truth at rank `
        + shownRank(query.ranks[index])),
      make("ol", { class: state.way === "t2i" ? "images" : "texts" }, ...entries));
  }

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
  at("words").addEventListener("input", search);
  at("filter").addEventListener("change", search);
  for (const radio of document.querySelectorAll("input[name=way]")) {
    radio.addEventListener("change", () => {
      state.way = radio.value;
      state.chosen = null;
      search();
    });
  }
  at("more").addEventListener("click", () => {
    const next = state.listed;
    state.listed += STEP;
    list();
    listed()[next].focus();
  });

  at("filter").replaceChildren(...Object.entries(FILTERS).map(([name, [text]]) => make("option", { value: name }, text)));
  for (const id of ["search", "count", "stage"]) at(id).hidden = false;
  const linked = /^#query=(t2i|i2t)-(\d+)$/.exec(location.hash);
  if (linked && queries[linked[1]][Number(linked[2])]) {
    state.way = linked[1];
    document.querySelector(`input[name=way][value=${linked[1]}]`).checked = true;
    search();
    open(queries[linked[1]][Number(linked[2])]);
    at("explorer").scrollIntoView();
  } else {
    search();
  }
})();
