"use strict";
// Tables that sort, hide columns and rows, and are copied; and what printing opens.
(() => {
  // The headings of a table's columns, from left to right: those of two rows' height come first.
  const headings = (table) => [...table.tHead.rows[0].cells].filter((cell) => cell.rowSpan > 1 || table.tHead.rows.length === 1)
    .concat(...[...table.tHead.rows].slice(1).map((row) => [...row.cells]));

  const value = (cell) => {
    const text = cell.textContent.trim();
    const number = parseFloat(text.replace("−", "-").replaceAll(",", ""));
    return Number.isNaN(number) ? text : number;
  };

  function sort(table, column, heading) {
    const before = heading.getAttribute("aria-sort");
    const first = typeof value(table.tBodies[0].rows[0].cells[column]) === "number" ? "descending" : "ascending";
    const order = before === null ? first : { ascending: "descending", descending: "ascending" }[before];
    for (const each of headings(table)) each.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const rows = [...table.tBodies[0].rows].map((row) => [value(row.cells[column]), row]);
    rows.sort(([one], [other]) => sign * (typeof one === "number" && typeof other === "number" ? one - other
      : String(one).localeCompare(String(other), "en")));
    table.tBodies[0].append(...rows.map(([, row]) => row));
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    headings(table).forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => sort(table, column, heading));
    });
  }

  function show(form) {
    const table = document.getElementById(form.dataset.table);
    const hidden = new Set([...form.querySelectorAll("input[type=checkbox]")].filter((box) => !box.checked)
      .map((box) => box.dataset.part));
    table.classList.toggle("without-intervals", hidden.has("intervals"));
    for (const cell of table.querySelectorAll("[data-of]")) {
      cell.hidden = cell.dataset.of.split(" ").some((part) => hidden.has(part));
    }
    // What is not shown is not explained.
    for (const part of ["letters", "intervals"]) {
      const notes = document.querySelectorAll(`[data-about="${table.id} ${part}"]`);
      for (const note of notes) note.hidden = hidden.has(part);
    }
    for (const group of table.querySelectorAll("[scope=colgroup]")) {
      const shown = headings(table).filter((cell) => cell.dataset.of?.startsWith(`${group.dataset.of} `) && !cell.hidden);
      group.hidden = shown.length === 0;
      group.colSpan = shown.length || 1;
    }
    const words = (form.querySelector("input[type=search]")?.value ?? "").toLowerCase().split(/\s+/).filter(Boolean);
    const rows = [...table.tBodies[0].rows];
    for (const row of rows) {
      const text = `${row.cells[0].textContent} ${row.dataset.names}`.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
    form.querySelector("[role=status]").textContent = rows.every((row) => row.hidden) ? "No system fits." : "";
  }

  async function copy(form, button) {
    const text = document.getElementById(button.dataset.copy).textContent;
    const said = form.querySelector("[role=status]");
    try {
      await navigator.clipboard.writeText(text);
    } catch { // no permission, or a browser that has no clipboard within a file
      const area = document.createElement("textarea");
      area.value = text;
      form.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
      button.focus();
    }
    said.textContent = `Copied ${text.trim().split("\n").length} lines: all systems, best first, without intervals.`;
  }

  for (const form of document.querySelectorAll("form.controls")) {
    if (matchMedia("(max-width: 50rem)").matches) {
      for (const box of form.querySelectorAll("[data-part=intervals], [data-part=letters]")) box.checked = false;
    }
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", () => show(form));
    for (const button of form.querySelectorAll("[data-copy]")) button.addEventListener("click", () => copy(form, button));
    form.hidden = false;
    show(form);
  }

  // On paper nothing can be opened.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const part of opened) part.open = true;
  });
  addEventListener("afterprint", () => {
    for (const part of opened) part.open = false;
  });
})();
