// The form of knobs: made of what the server lists, and kept while its knobs are the same, so that a drag goes on.

import { STEPS, position, range, written } from "./quantities.js";

const form = document.getElementById("knobs");
let signature = "";
let known = [];

// Shows knobs; `turn(change)` is called with each change.
export function show(knobs, turn) {
  const groups = knobs.filter((knob) => knob.key.endsWith(".congestion")).length;
  const now = JSON.stringify(knobs.map(({ key, kind, choices, value }) => [key, kind, choices, value === null]));
  if (now !== signature) {
    build(knobs, turn, groups);
    signature = now;
  }
  known = knobs;
  for (const knob of knobs) refresh(knob);
}

function build(knobs, turn, groups) {
  const focused = document.activeElement?.id;
  const sets = new Map();
  for (const knob of knobs) {
    const title = titleOf(knob.key);
    if (!sets.has(title)) sets.set(title, []);
    sets.get(title).push(knob);
  }
  form.replaceChildren(
    ...[...sets].map(([title, own]) => fieldset(title, own, turn, groups)),
    button("Add a group", groups === 0 || groups >= 4, () => turn({ add: "flows" })),
  );
  document.getElementById(focused)?.focus();
}

function titleOf(key) {
  const group = /^flows\[(\d)\]/.exec(key);
  if (group) return `Group ${Number(group[1]) + 1}`;
  return /^(network|tcp)\b/.test(key) ? "Network" : "Run";
}

function fieldset(title, knobs, turn, groups) {
  const made = element("fieldset", {}, element("legend", { textContent: title }), ...knobs.map((knob) => row(knob, turn)));
  if (title.startsWith("Group") && groups > 1) {
    const number = Number(title.slice(6)) - 1;
    made.append(button("Remove", false, () => turn({ remove: `flows[${number}]` }), `Remove group ${number + 1}`));
  }
  return made;
}

function row(knob, turn) {
  const id = `knob-${knob.key}`;
  const label = element("label", { htmlFor: id, textContent: knob.label });
  if (knob.kind === "choice") {
    const choices = knob.choices.includes(knob.value) || knob.value === null ? knob.choices : [knob.value, ...knob.choices];
    const select = element("select", { id, disabled: knob.value === null });
    select.append(...choices.map((name) => element("option", { value: name, textContent: name })));
    select.addEventListener("change", () => turn({ key: knob.key, value: select.value }));
    return element("div", { className: "knob wide" }, label, select);
  }
  if (knob.kind === "flag") {
    const box = element("input", { id, type: "checkbox" });
    box.addEventListener("change", () => turn({ key: knob.key, value: box.checked }));
    return element("div", { className: "knob wide" }, element("label", { className: "check" }, box, knob.label));
  }
  return element("div", { className: "knob" }, label, slider(knob, id, turn), entry(knob, id, turn));
}

function slider(knob, id, turn) {
  const [low, high] = knob.kind === "count" ? range(knob) : [0, STEPS];
  const made = element("input", { id, type: "range", min: low, max: high, step: 1, disabled: knob.value === null });
  made.addEventListener("input", () => {
    const now = known.find((each) => each.key === knob.key);
    const value = written(now, Number(made.value));
    document.getElementById(`${id}-text`).value = value;
    made.setAttribute("aria-valuetext", String(value));
    turn({ key: knob.key, value });
  });
  return made;
}

function entry(knob, id, turn) {
  const made = element("input", { id: `${id}-text`, type: "text", disabled: knob.value === null, autocomplete: "off" });
  made.setAttribute("aria-label", `${knob.label}, as text`);
  made.addEventListener("change", () => {
    const isNumber = ["count", "chance"].includes(knob.kind) && made.value.trim() !== "" && !isNaN(made.value);
    turn({ key: knob.key, value: isNumber ? Number(made.value) : made.value });
  });
  return made;
}

function refresh(knob) {
  const control = document.getElementById(`knob-${knob.key}`);
  const text = document.getElementById(`knob-${knob.key}-text`);
  if (knob.value === null) {
    if (text) text.value = "in the file";
    return;
  }
  if (knob.kind === "flag") control.checked = knob.value;
  else if (knob.kind === "choice") control.value = knob.value;
  else {
    if (document.activeElement !== control) control.value = position(knob, knob.value);
    if (document.activeElement !== text) text.value = knob.text;
    control.setAttribute("aria-valuetext", knob.text);
  }
}

export function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function button(text, disabled, act, label = text) {
  const made = element("button", { type: "button", textContent: text, disabled });
  made.setAttribute("aria-label", label);
  made.addEventListener("click", act);
  return made;
}
