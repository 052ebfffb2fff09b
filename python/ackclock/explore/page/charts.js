// The panels: uPlot charts on one time axis with one zoom and one cursor, and the phase plot.
/* global uPlot */

import { curvesOf, phaseOf, PANELS } from "./curves.js";
import { element } from "./knobs.js";

const HEIGHT = 170;
const PHASE_HEIGHT = 260;
const AXIS_PX = 56;

const style = () => getComputedStyle(document.documentElement);
export const colour = (name) => style().getPropertyValue(`--${name}`).trim();

export class Panels {
  constructor(root) {
    this.zoom = null;
    this.duration = 1;
    this.panels = new Map();
    for (const { id, title } of PANELS) {
      const plot = element("div", { className: "plot", id: `plot-${id}`, tabIndex: 0 });
      plot.setAttribute("role", "img");
      plot.setAttribute("aria-keyshortcuts", "+ - ArrowLeft ArrowRight Escape");
      const caption = element("figcaption", {}, element("b", { textContent: title }), element("span", {}));
      root.append(element("figure", {}, caption, plot));
      this.panels.set(id, { id, title, plot, caption, chart: null, signature: "" });
      plot.addEventListener("keydown", (event) => this.#key(event));
    }
    new ResizeObserver(() => this.#resize()).observe(root);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      for (const panel of this.panels.values()) panel.signature = "";
      this.show(...this.shown);
    });
  }

  // Draws pictures of A and B (null if there is none), and of models.
  show(a, b, models) {
    this.shown = [a, b, models];
    if (this.duration !== a.duration_s) this.zoom = null;
    this.duration = a.duration_s;
    for (const panel of this.panels.values()) {
      const isPhase = panel.id === "phase";
      const curves = isPhase ? phaseOf(a, b) : curvesOf(panel.id, a, b, models, colour);
      panel.caption.firstChild.textContent = curves.title ?? panel.title;
      panel.plot.setAttribute("aria-label", `${panel.title}. ${curves.summary}`);
      if (curves.lines.length === 0) this.#clear(panel, curves.summary);
      else if (isPhase) this.#phase(panel, curves);
      else this.#draw(panel, curves);
    }
  }

  #clear(panel, text) {
    panel.chart?.destroy();
    Object.assign(panel, { chart: null, signature: "" });
    panel.plot.textContent = text;
    panel.plot.classList.add("empty");
    panel.caption.lastChild.textContent = "";
  }

  #draw(panel, { lines: given, bands }) {
    const { lines, data } = joined(given);
    const signature = JSON.stringify([lines.map(({ t, y, ...rest }) => rest), bands]);
    if (panel.signature === signature && panel.chart) {
      panel.chart.setData(data);
      return;
    }
    this.#replace(panel, signature, {
      width: panel.plot.clientWidth, height: HEIGHT, legend: { show: false }, bands,
      scales: {
        x: { time: false, range: () => this.zoom ?? [0, this.duration] },
        y: { range: (_, low, high) => [0, high > 0 ? high * 1.06 : 1] },
      },
      axes: [axis({ values: (_, splits) => splits.map((at) => `${at} s`) }), axis({ size: AXIS_PX })],
      series: [{}, ...lines.map(series)],
      cursor: {
        sync: { key: "time" }, y: false, points: { show: false },
        drag: { x: true, y: false, setScale: false },
        bind: { dblclick: () => () => this.#zoomTo(null) },
      },
      hooks: { setSelect: [(chart) => this.#selected(chart)], setCursor: [(chart) => readout(panel, chart)] },
    }, data);
  }

  #phase(panel, { lines }) {
    const data = [null, ...lines.map(({ x, y }) => [x, y])];
    const signature = JSON.stringify(lines.map(({ x, y, ...rest }) => rest));
    if (panel.signature === signature && panel.chart) {
      panel.chart.setData(data);
      return;
    }
    const fromZero = (_, low, high) => [0, high > 0 ? high * 1.05 : 1];
    this.#replace(panel, signature, {
      mode: 2, width: panel.plot.clientWidth, height: PHASE_HEIGHT, legend: { show: false }, cursor: { show: false },
      scales: { x: { time: false, range: fromZero }, y: { range: fromZero } },
      axes: [
        axis({ label: "sum of the windows (segments)", labelSize: 18, size: 34 }),
        axis({ size: AXIS_PX }),
      ],
      series: [{}, ...lines.map((line) => ({
        stroke: colour(line.colour), paths: trajectory(line.dash), facets: [{ scale: "x", auto: true }, { scale: "y", auto: true }],
      }))],
    }, data);
  }

  #replace(panel, signature, options, data) {
    panel.chart?.destroy();
    panel.plot.replaceChildren();
    panel.plot.classList.remove("empty");
    Object.assign(panel, { signature, labels: options.series.map(({ label }) => label) });
    panel.chart = new uPlot(options, data, panel.plot);
  }

  #resize() {
    for (const { chart, plot, id } of this.panels.values()) {
      chart?.setSize({ width: plot.clientWidth, height: id === "phase" ? PHASE_HEIGHT : HEIGHT });
    }
  }

  #selected(chart) {
    const { left, width } = chart.select;
    if (width < 6) return;
    const range = [chart.posToVal(left, "x"), chart.posToVal(left + width, "x")];
    chart.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    this.#zoomTo(range);
  }

  #zoomTo(range) {
    if (range) {
      const width = Math.min(this.duration, Math.max(range[1] - range[0], this.duration / 1e4));
      const low = Math.min(Math.max(0, range[0]), this.duration - width);
      range = width < this.duration ? [low, low + width] : null;
    }
    this.zoom = range;
    const [min, max] = range ?? [0, this.duration];
    for (const { chart, id } of this.panels.values()) if (id !== "phase") chart?.setScale("x", { min, max });
  }

  #key(event) {
    const [low, high] = this.zoom ?? [0, this.duration];
    const quarter = (high - low) / 4;
    const ranges = {
      "+": [low + quarter, high - quarter], "=": [low + quarter, high - quarter],
      "-": [low - 2 * quarter, high + 2 * quarter], ArrowLeft: [low - quarter, high - quarter],
      ArrowRight: [low + quarter, high + quarter], Escape: null, 0: null,
    };
    if (!(event.key in ranges)) return;
    event.preventDefault();
    this.#zoomTo(ranges[event.key]);
  }
}

// Data of lines with times of their own, on one axis, and the lines in the data's order: those with the same times follow
// each other.
function joined(given) {
  const times = [...new Set(given.map(({ t }) => t))];
  const lines = times.flatMap((t) => given.filter((line) => line.t === t));
  const tables = times.map((t) => [t, ...lines.filter((line) => line.t === t).map(({ y }) => y)]);
  return { lines, data: tables.length === 1 ? tables[0] : uPlot.join(tables) };
}

function series(line) {
  const bars = line.bars ? { paths: uPlot.paths.bars({ size: [1, 12] }) } : line.steps ? { paths: uPlot.paths.stepped({ align: 1 }) } : {};
  return {
    label: line.label, stroke: line.stroke, width: line.width ?? 1.5, dash: line.dash, fill: line.fill,
    points: { show: false }, ...bars,
  };
}

function axis(more) {
  return {
    stroke: () => colour("quiet"), grid: { stroke: () => colour("faint"), width: 1 }, ticks: { show: false }, size: 24,
    font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif", ...more,
  };
}

// The values under the cursor, in the caption.
function readout(panel, chart) {
  const at = chart.cursor.idx;
  const parts = [];
  if (at != null && chart.cursor.left >= 0) {
    panel.labels.forEach((label, number) => {
      const value = latest(chart.data[number], at);
      if (label && value != null && parts.length < 6) parts.push(`${label} ${Number(value.toPrecision(3))}`);
    });
    parts.unshift(`${chart.data[0][at].toPrecision(4)} s`);
  }
  panel.caption.lastChild.textContent = parts.join(" · ");
}

function latest(values, at) {
  while (at > 0 && values[at] === undefined) at -= 1;
  return values[at];
}

// A path in the order of time, which uPlot's own paths are not made for: they expect ascending values.
function trajectory(dash) {
  return (chart, number) => {
    uPlot.orient(chart, number, (drawn, x, y, scaleX, scaleY, toX, toY, left, top, width, height) => {
      const [xs, ys] = chart.data[number];
      const path = new Path2D();
      let isDown = false;
      xs.forEach((value, place) => {
        if (value === null || ys[place] === null) {
          isDown = false;
          return;
        }
        const point = [toX(value, scaleX, width, left), toY(ys[place], scaleY, height, top)];
        if (isDown) path.lineTo(...point);
        else path.moveTo(...point);
        isDown = true;
      });
      const { ctx } = chart;
      ctx.save();
      ctx.strokeStyle = typeof drawn.stroke === "function" ? drawn.stroke(chart, number) : drawn.stroke;
      ctx.lineWidth = devicePixelRatio;
      ctx.setLineDash(dash ?? []);
      ctx.stroke(path);
      ctx.restore();
    });
    return null;
  };
}
