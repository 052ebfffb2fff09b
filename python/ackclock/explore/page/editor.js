// The scenario file: a text with line numbers, and its mistakes at their lines.

import { element } from "./knobs.js";

const text = document.getElementById("text");
const lines = document.getElementById("lines");
const list = document.getElementById("problems");
const PAUSE_MS = 250;

let typing = 0;
let wrong = new Set();

// Shows a text, unless somebody is writing in it; `force`: even then.
export function show(content, found, force = false) {
  if ((force || document.activeElement !== text) && text.value !== content) text.value = content;
  problems(found);
}

// Shows mistakes; a click on one goes to its line.
export function problems(found) {
  wrong = new Set(found.map(({ line }) => line));
  number();
  list.replaceChildren(...found.map(({ line, text: sentence }) => {
    const item = element("li", {});
    if (line === null) item.textContent = sentence;
    else {
      const button = element("button", { type: "button", textContent: sentence.replace(/^scenario:(\d+):/, "line $1:") });
      button.addEventListener("click", () => goTo(line));
      item.append(button);
    }
    return item;
  }));
}

export function onChange(act) {
  text.addEventListener("input", () => {
    number();
    clearTimeout(typing);
    typing = setTimeout(() => act(text.value), PAUSE_MS);
  });
  text.addEventListener("scroll", () => (lines.scrollTop = text.scrollTop));
}

function number() {
  const count = text.value.split("\n").length;
  lines.replaceChildren(...Array.from({ length: count }, (_, place) => {
    const isWrong = wrong.has(place + 1);
    return element("span", { className: isWrong ? "wrong" : "", textContent: `${place + 1}\n` });
  }));
  lines.scrollTop = text.scrollTop;
}

function goTo(line) {
  const before = text.value.split("\n").slice(0, line - 1).join("\n").length;
  const start = line > 1 ? before + 1 : 0;
  const end = text.value.indexOf("\n", start);
  text.focus();
  text.setSelectionRange(start, end < 0 ? text.value.length : end);
  text.scrollTop = (line - 3) * parseFloat(getComputedStyle(text).lineHeight);
}
