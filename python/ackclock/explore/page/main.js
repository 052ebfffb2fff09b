// The page: two settings, A that the knobs turn and B to compare it with, and what is shown of them.

import { Runner, opening, post } from "./api.js";
import { Panels, colour } from "./charts.js";
import { groupColour, groupsOf } from "./curves.js";
import * as editor from "./editor.js";
import * as knobs from "./knobs.js";
import * as link from "./link.js";
import { Motion } from "./motion.js";
import * as numbers from "./numbers.js";

const at = (id) => document.getElementById(id);
const panels = new Panels(at("panels"));
const settings = { a: empty(), b: empty() };
const motion = new Motion(at("motion"), () => settings.a.text);
const runners = {
  a: new Runner("a", (part, request) => TAKE[part.part]("a", part, request), failed, showBusy),
  b: new Runner("b", (part, request) => TAKE[part.part]("b", part, request), failed, showBusy),
};

// Changes that no answer has had yet, by what they change.
let changes = new Map();
let lessons = [];
let file = null;
let keepingLink = 0;

function empty() {
  return { text: "", command: "", picture: null, numbers: null, models: [] };
}

// --- requests

function ask(setting = "a") {
  const { text } = settings[setting];
  const request = { text, changes: setting === "a" ? [...changes.values()] : [], models: at("models").checked };
  runners[setting].ask({ ...request, since: performance.now() });
}

function turn(change) {
  const name = change.key ?? JSON.stringify(change);
  changes.delete(name);
  changes.set(name, change);
  ask();
}

function setText(setting, text) {
  if (setting === "a") changes = new Map();
  runners[setting].stop();
  Object.assign(settings[setting], { text });
  ask(setting);
}

function clearB() {
  runners.b.stop();
  settings.b = empty();
}

// --- answers

const TAKE = {
  scenario(setting, part, request) {
    const isNew = settings[setting].drawnText !== part.text;
    Object.assign(settings[setting], { text: part.text, drawnText: part.text, command: part.command });
    if (setting === "b") return;
    if (isNew) motion.clear();
    for (const change of request.changes) {
      const name = change.key ?? JSON.stringify(change);
      if (changes.get(name) === change) changes.delete(name);
    }
    editor.show(part.text, []);
    knobs.show(part.knobs, turn);
  },
  problems(setting, part, request) {
    if (part.text !== undefined) TAKE.scenario(setting, part, request);
    else if (setting === "a") changes = new Map();
    editor.problems(part.problems);
    status("");
  },
  picture(setting, part, request) {
    Object.assign(settings[setting], { picture: part });
    draw();
    if (setting === "a") report(part, request.since);
  },
  numbers(setting, part) {
    Object.assign(settings[setting], { numbers: part, models: [] });
    showNumbers();
    keepLink();
  },
  models(setting, part) {
    Object.assign(settings[setting], { models: part.models });
    draw();
    showNumbers();
  },
  error(setting, part) {
    editor.problems([{ line: null, text: part.text }]);
  },
  superseded() {},
};

// Screen readers wait until the numbers are complete.
function showBusy() {
  const isBusy = runners.a.isBusy || runners.b.isBusy;
  document.querySelector(".results").setAttribute("aria-busy", String(isBusy));
}

function draw() {
  const { a, b } = settings;
  if (!a.picture) return;
  panels.show(a.picture, b.picture, at("models").checked ? a.models : []);
  showLegend();
}

function showNumbers() {
  const { a, b } = settings;
  if (a.numbers) numbers.show(a.numbers, b.numbers, at("models").checked ? a.models : []);
  for (const id of ["swap", "drop"]) at(id).disabled = b.text === "";
}

// The time from a knob to its picture, once that is on the screen.
function report(picture, since) {
  const part = picture.until_s < picture.duration_s ? `, the first ${Number(picture.until_s.toPrecision(3))} s so far` : "";
  requestAnimationFrame(() => setTimeout(() => {
    const ms = performance.now() - since;
    document.documentElement.dataset.latency = ms.toFixed(1);
    document.documentElement.dataset.drawn = String(1 + Number(document.documentElement.dataset.drawn ?? 0));
    status(`Drawn in ${ms.toFixed(0)} ms${part}.`);
  }));
}

function failed(error) {
  status(`No answer: is ackclock explore still running? (${error.message})`);
}

function status(text) {
  at("status").textContent = text;
}

function showLegend() {
  const { a, b, models } = { a: settings.a.picture, b: settings.b.picture, models: settings.a.models };
  const groups = groupsOf(a, b);
  const items = groups.map((name) => swatch(name, colour(groupColour(name, groups)), ""));
  if (b) items.push(swatch("A", colour("ink"), ""), swatch("B", colour("ink"), "6 4"));
  if (at("models").checked && models.some((each) => each.picture)) items.push(swatch("models", colour("ink"), "2 3"));
  at("legend").replaceChildren(...items);
}

function swatch(text, stroke, dashes) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
  svg.setAttribute("viewBox", "0 0 36 10");
  svg.setAttribute("aria-hidden", "true");
  for (const [name, value] of Object.entries({ x1: 0, x2: 36, y1: 5, y2: 5, stroke, "stroke-width": 4, "stroke-dasharray": dashes })) {
    line.setAttribute(name, value);
  }
  svg.append(line);
  return knobs.element("li", {}, svg, text);
}

// --- lessons, B, and what is taken along

function open(name) {
  const lesson = lessons.find((each) => each.name === name);
  showLesson(lesson);
  clearB();
  if (lesson.compare) setText("b", lesson.compare);
  editor.show(lesson.scenario, [], true);
  setText("a", lesson.scenario);
}

function showLesson(lesson) {
  const about = at("about");
  about.hidden = !lesson;
  at("lesson").value = lesson?.name ?? "";
  if (!lesson) return;
  about.querySelector("summary").textContent = lesson.title;
  about.querySelector(".text").textContent = lesson.text;
  about.querySelector(".watch").textContent = `Watch: ${lesson.watch}`;
  about.querySelector("ol").replaceChildren(...lesson.questions.map((text) => knobs.element("li", { textContent: text })));
}

function keepLink() {
  clearTimeout(keepingLink);
  keepingLink = setTimeout(async () => {
    const lesson = at("lesson").value;
    const state = { a: settings.a.text, b: settings.b.text, models: at("models").checked, lesson };
    history.replaceState(null, "", `#${await link.fragment(state)}`);
  }, 300);
}

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    status(`${what} copied: ${text.split("\n")[0]}`);
  } catch {
    status(`The browser does not allow copying. ${what}: ${text}`);
  }
}

function save(name, parts, type) {
  const address = URL.createObjectURL(new Blob(parts, { type }));
  knobs.element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

const fileName = () => (file ?? (at("lesson").value || "scenario")).split("/").pop().replace(/\.toml$/, "");

async function fullReport() {
  status("Making the report …");
  const response = await post("report", { text: settings.a.text }).catch(failed);
  if (!response) return;
  if (!response.ok) {
    TAKE.problems("a", await response.json(), { changes: [] });
    return;
  }
  save(`${fileName()}.html`, [await response.blob()], "text/html");
  status("The report is among your downloads.");
}

const CLICKS = {
  keep() {
    runners.b.stop();
    settings.b = { ...settings.a };
    draw();
    showNumbers();
    keepLink();
  },
  swap() {
    runners.b.stop();
    [settings.a, settings.b] = [settings.b, settings.a];
    editor.show(settings.a.text, [], true);
    setText("a", settings.a.text);
  },
  drop() {
    clearB();
    draw();
    showNumbers();
    keepLink();
  },
  command: () => copy(settings.a.command, "Command"),
  download: () => save(`${fileName()}.toml`, [settings.a.text], "application/toml"),
  report: fullReport,
  link: () => copy(location.href, "Link"),
};

async function start() {
  const given = await opening();
  ({ lessons, file } = given);
  const choices = [["", "–"], ...lessons.map(({ name, title }, n) => [name, `${n + 1}. ${title}`])];
  at("lesson").append(...choices.map(([value, textContent]) => knobs.element("option", { value, textContent })));
  at("lesson").addEventListener("change", () => (at("lesson").value ? open(at("lesson").value) : showLesson(null)));
  at("models").addEventListener("change", () => ask());
  at("knobs").addEventListener("submit", (event) => event.preventDefault());
  for (const [id, act] of Object.entries(CLICKS)) at(id).addEventListener("click", act);
  editor.onChange((text) => setText("a", text));
  addEventListener("hashchange", restore);
  if (!(await restore())) {
    if (given.text === lessons[0].scenario) open(lessons[0].name);
    else {
      editor.show(given.text, [], true);
      setText("a", given.text);
    }
  }
}

// Opens the state of the address's fragment, if there is one.
async function restore() {
  const state = await link.state(location.hash);
  if (!state) return false;
  showLesson(lessons.find(({ name }) => name === state.lesson));
  at("models").checked = state.models === true;
  clearB();
  if (typeof state.b === "string" && state.b) setText("b", state.b);
  editor.show(state.a, [], true);
  setText("a", state.a);
  return true;
}

start().catch(failed);
