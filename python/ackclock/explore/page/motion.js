// Slow motion: the packets of a moment on a drawn path, from the senders through the queue over the link, and the ACKs.

import { post } from "./api.js";
import { colour } from "./charts.js";
import { groupColour } from "./curves.js";
import { element } from "./knobs.js";

const HEIGHT = 190;
const DATA_Y = 60;
const ACK_Y = 150;
const EDGE = 16;

// How long a moment takes, in seconds.
const LENGTHS = [10, 30, 90];

export class Motion {
  constructor(root, textOf) {
    this.textOf = textOf;
    this.from = element("input", { type: "number", min: 0, step: "any", id: "motion-from", value: 0 });
    this.length = element("select", { id: "motion-length" });
    this.length.append(...LENGTHS.map((seconds) => element("option", { value: seconds, textContent: `${seconds} s` })));
    this.play = element("button", { type: "button", id: "motion-play", textContent: "Play" });
    this.position = element("input", { type: "range", min: 0, max: 1000, value: 0, id: "motion-position", disabled: true });
    this.position.setAttribute("aria-label", "Position in the moment");
    this.canvas = element("canvas", { height: HEIGHT });
    this.canvas.setAttribute("role", "img");
    this.caption = element("p", { className: "note", id: "motion-caption" });
    const controls = element("div", { className: "buttons" },
      element("label", { textContent: "From (s) " }, this.from),
      element("label", { textContent: "play in " }, this.length), this.play, this.position);
    root.append(element("h2", { textContent: "Slow motion" }), controls, this.canvas, this.caption);
    this.play.addEventListener("click", () => this.#toggle());
    this.from.addEventListener("change", () => this.clear());
    this.position.addEventListener("input", () => {
      this.#stop();
      this.#show(Number(this.position.value) / 1000);
    });
    this.clear();
  }

  // Forgets the moment: the setting is another one.
  clear() {
    this.#stop();
    this.moment = null;
    this.canvas.hidden = true;
    this.position.disabled = true;
    this.position.value = 0;
    this.caption.textContent = "Packets at the busiest bottleneck of A, a few round trips from an instant on.";
  }

  async #toggle() {
    if (this.timer) {
      this.#stop();
      return;
    }
    if (!this.moment && !(await this.#load())) return;
    const start = Number(this.position.value) >= 1000 ? 0 : Number(this.position.value) / 1000;
    const began = performance.now();
    this.play.textContent = "Pause";
    const step = () => {
      const share = Math.min(1, start + (performance.now() - began) / (1000 * this.length.value));
      this.position.value = Math.round(1000 * share);
      this.#show(share);
      if (share < 1) this.timer = requestAnimationFrame(step);
      else this.#stop();
    };
    this.timer = requestAnimationFrame(step);
  }

  #stop() {
    cancelAnimationFrame(this.timer);
    this.timer = 0;
    this.play.textContent = "Play";
  }

  async #load() {
    const response = await post("packets", { text: this.textOf(), from: Number(this.from.value) }).catch(() => null);
    const answer = await response?.json();
    if (!response?.ok) {
      this.caption.textContent = answer?.problems[0].text ?? "No answer: is ackclock explore still running?";
      return false;
    }
    this.moment = answer;
    this.canvas.hidden = false;
    this.position.disabled = false;
    return true;
  }

  #show(share) {
    const { moment } = this;
    if (!moment) return;
    const at = moment.from_s + share * (moment.until_s - moment.from_s);
    const fade = (moment.until_s - moment.from_s) / 15;
    const counts = { waiting: 0, flying: 0, acks: 0, dropped: 0 };
    const pen = this.#pen();
    const paint = (flow) => colour(groupColour(moment.groups[flow], [...new Set(Object.values(moment.groups))]));
    const waiting = moment.packets.filter(([, came, left, , dropped]) => came <= at && at < (left ?? dropped ?? Infinity));
    counts.waiting = waiting.length;
    pen.queue(waiting.map(([flow]) => paint(flow)));
    for (const [flow, came, left, arrived, dropped] of moment.packets) {
      if (left !== null && left <= at && at < (arrived ?? Infinity)) {
        counts.flying += 1;
        pen.data((at - left) / ((arrived ?? moment.until_s + fade) - left), paint(flow));
      }
      if (dropped !== null && moment.from_s <= dropped && dropped <= at) {
        counts.dropped += 1;
        if (at < dropped + fade) pen.drop((at - dropped) / fade, dropped > came);
      }
    }
    for (const [flow, sent, arrived] of moment.acks) {
      if (sent > at || at >= arrived) continue;
      counts.acks += 1;
      pen.ack((at - sent) / (arrived - sent), paint(flow));
    }
    const text = `${counts.waiting} waiting at ${moment.link}, ${counts.flying} on the way, ${counts.acks} ACKs, ${counts.dropped} dropped`;
    this.caption.textContent = `${at.toFixed(4)} s: ${text}.`;
    this.canvas.setAttribute("aria-label", text);
  }

  // What draws on the empty path.
  #pen() {
    const { canvas } = this;
    const width = canvas.parentElement.clientWidth;
    Object.assign(canvas, { width: width * devicePixelRatio, height: HEIGHT * devicePixelRatio });
    Object.assign(canvas.style, { width: `${width}px`, height: `${HEIGHT}px` });
    const context = canvas.getContext("2d");
    context.scale(devicePixelRatio, devicePixelRatio);
    const link = 0.45 * width;
    const end = width - EDGE;
    path(context, { link, end });
    const dot = (x, y, fill) => {
      context.fillStyle = fill;
      context.beginPath();
      context.arc(x, y, 3.5, 0, 2 * Math.PI);
      context.fill();
    };
    return {
      queue(fills) {
        const step = Math.min(9, (link - 2 * EDGE) / Math.max(1, fills.length));
        fills.forEach((fill, place) => {
          context.fillStyle = fill;
          context.fillRect(link - (place + 1) * step, DATA_Y - 14, Math.max(0.6, step - 1), 28);
        });
      },
      data: (share, fill) => dot(link + share * (end - link), DATA_Y, fill),
      ack: (share, fill) => dot(end - share * (end - EDGE), ACK_Y, fill),
      drop: (share, isHead) => dot(isHead ? link - 5 : EDGE + 8, DATA_Y + 20 + share * 55, colour("alarm")),
    };
  }
}

function path(context, { link, end }) {
  context.clearRect(0, 0, end + EDGE, HEIGHT);
  context.strokeStyle = colour("faint");
  context.lineWidth = 2;
  for (const [from, y, to] of [[EDGE, DATA_Y, end], [EDGE, ACK_Y, end]]) {
    context.beginPath();
    context.moveTo(from, y);
    context.lineTo(to, y);
    context.stroke();
  }
  context.strokeStyle = colour("quiet");
  context.strokeRect(EDGE, DATA_Y - 18, link - EDGE, 36);
  context.fillStyle = colour("quiet");
  context.font = "12px system-ui, sans-serif";
  context.fillText("queue", EDGE, DATA_Y - 26);
  context.fillText("link", link + 8, DATA_Y - 26);
  context.fillText("ACKs", EDGE, ACK_Y - 12);
  context.textAlign = "right";
  context.fillText("receivers", end, DATA_Y - 26);
  context.textAlign = "left";
}
