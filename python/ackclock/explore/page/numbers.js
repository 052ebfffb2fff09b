// The tables: who got what, in A and in B, and the main metrics, with those of models; warnings as sentences.

import { element } from "./knobs.js";

const place = document.getElementById("numbers");
const list = document.getElementById("warnings");

// Shows the numbers of A and B (null if there is none), and of models.
export function show(a, b, models) {
  const tables = [groups("Who got what", a.groups)];
  if (b) tables.push(groups("Who got what in B", b.groups));
  tables.push(metrics(a, b, models));
  for (const { engine, why } of models) {
    if (why) tables.push(element("p", { className: "note", textContent: `${engine}: ${why}` }));
  }
  place.replaceChildren(...tables);
  list.replaceChildren(
    ...a.warnings.map((text) => element("li", { textContent: text })),
    ...(b?.warnings ?? []).map((text) => element("li", { textContent: `B: ${text}` })),
  );
}

function groups(title, { heads, rows }) {
  const body = heads.slice(1).map((head, column) => [head, ...rows.map((row) => row[column + 1])]);
  return table(title, ["", ...rows.map((row) => row[0])], body);
}

function metrics(a, b, models) {
  const columns = [["A", a.metrics], ...(b ? [["B", b.metrics]] : [])];
  for (const { engine, metrics: own } of models) if (own.length) columns.push([engine, own]);
  const names = new Map(columns.flatMap(([, rows]) => rows.map(([name, label]) => [name, label])));
  const body = [...names].map(([name, label]) => [
    label, ...columns.map(([, rows]) => rows.find((row) => row[0] === name)?.[2] ?? "–"),
  ]);
  return table("Metrics after the warm-up", ["", ...columns.map(([title]) => title)], body, [...names.keys()]);
}

function table(title, heads, rows, names = []) {
  const head = element("thead", {}, element("tr", {}, ...heads.map((text) => element("th", { textContent: text, scope: "col" }))));
  const body = element("tbody", {}, ...rows.map(([label, ...cells], number) => {
    const row = element("tr", {}, element("th", { textContent: label, scope: "row" }));
    row.append(...cells.map((text) => element("td", { textContent: text })));
    if (names[number]) row.dataset.metric = names[number];
    return row;
  }));
  const made = element("table", {}, element("caption", { textContent: title }), head, body);
  const scroll = element("div", { className: "scroll", tabIndex: 0 }, made);
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", title);
  return scroll;
}
