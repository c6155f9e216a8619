"use strict";
// The difference of two systems in RSUM: read from the tables of every two, whichever of the two comes first.

// "+12.0 [+1.0, +23.0]" turned around: "−12.0 [−23.0, −1.0]".
function turned(text) {
  const flip = (number) => {
    if (/^0(\.0*)?$/.test(number)) return number;
    return number.startsWith("−") ? number.replace("−", "+") : `−${number.replace("+", "")}`;
  };
  const [value, low, high] = text.match(/[+−]?[\d.,]*\d/g).map(flip);
  return `${value} [${high}, ${low}]`;
}

// What the table of pairs says of B minus A in words; null where it has no such pair. a, b: each a name of
// results/metrics.json, or those of several seeds, with commas.
function differenceOf(table, a, b) {
  const has = (names, name) => names === name || names.split(",").includes(name);
  for (const row of table.tBodies[0].rows) {
    const { a: lower, b: higher } = row.dataset;
    const forwards = has(lower, a) && has(higher, b);
    if (!forwards && !(has(lower, b) && has(higher, a))) continue;
    const [, , difference, p, adjusted] = [...row.cells].map((cell) => cell.textContent.replace(/\s+/g, " ").trim());
    const shown = (chance) => `p ${chance.startsWith("<") ? "" : "= "}${chance}`.replaceAll(" ", "\u00a0");
    const { correctedFor } = table.dataset;
    const corrected = correctedFor ? `; corrected for ${correctedFor}: ${shown(adjusted)}` : "";
    const seeds = `${lower}${higher}`.includes(",") ? " over all seeds" : "";
    return `RSUM${seeds}, B − A: ${forwards ? difference : turned(difference)}, ${shown(p)}${corrected}`;
  }
  return null;
}

for (const form of document.querySelectorAll("form.pair-of-two")) {
  const table = document.getElementById(form.dataset.pairs);
  const [a, b] = form.querySelectorAll("select");
  const show = () => {
    form.querySelector("[role=status]").textContent = a.value === b.value ? "Choose two different systems."
      : differenceOf(table, a.value, b.value) ?? "This pair was not tested.";
  };
  a.selectedIndex = 1;
  b.selectedIndex = 0;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", show);
  form.hidden = false;
  show();
}
