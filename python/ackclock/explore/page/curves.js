// What each panel draws of the pictures that the server sends: A solid, B dashed, models dotted, one colour a group.

const DASHED = [6, 4];
const DOTTED = [2, 3];

export const PANELS = [
  { id: "cwnd", title: "Congestion windows (segments)" },
  { id: "goodput", title: "Goodput by group (Mb/s)" },
  { id: "queue", title: "Queueing delay (ms)" },
  { id: "events", title: "Drops and marks (packets)" },
  { id: "phase", title: "Phase plot: packets in the queue against the window" },
];

const NOTHING = { lines: [], bands: [], summary: "Nothing to draw: no long-lived flow was sampled." };

export const groupColour = (name, groups) => `group-${Math.max(0, groups.indexOf(name)) % 6}`;

export const groupsOf = (a, b) => [...new Set([...a.groups, ...(b?.groups ?? [])])];

export function curvesOf(id, a, b, models, colour) {
  const groups = groupsOf(a, b);
  const paint = (name) => colour(groupColour(name, groups));
  return { cwnd, goodput, queue, events }[id](a, b, models.filter((each) => each.picture), paint, colour);
}

function cwnd(a, b, models, paint, colour) {
  const lines = [];
  const add = (picture, label, more) => {
    for (const line of picture?.cwnd?.lines ?? []) {
      lines.push({ t: picture.cwnd.t, y: line.y, label: `${label}${line.label}`, stroke: paint(line.group), width: 1.2, ...more });
    }
  };
  add(a, "", {});
  add(b, "B: ", { dash: DASHED });
  for (const { engine, picture } of models) {
    for (const line of picture.cwnd?.lines.slice(0, 4) ?? []) {
      lines.push({ t: picture.cwnd.t, y: line.y, label: engine, stroke: colour("ink"), dash: DOTTED, width: 1.2 });
    }
  }
  const shown = a.cwnd && a.cwnd.flows > a.cwnd.lines.length ? `, ${a.cwnd.lines.length} of ${a.cwnd.flows} flows` : "";
  const title = `Congestion windows (segments${shown}${a.seeds > 1 ? ", first seed" : ""})`;
  return lines.length ? { lines, bands: [], title, summary: `${lines.length} lines.` } : NOTHING;
}

function goodput(a, b, _, paint, colour) {
  if (!a.goodput) return { ...NOTHING, summary: "Nothing to draw: no long-lived flow was sampled." };
  const { lines, bands } = a.seeds > 1 ? banded(a.goodput, paint) : stacked(a.goodput, paint);
  if (b?.goodput) {
    for (const [group, y] of cumulative(b.goodput, a.seeds > 1)) {
      lines.push({ t: b.goodput.t, y, label: `B: ${group}`, stroke: paint(group), dash: DASHED });
    }
  }
  if (a.goodput.rate) {
    lines.push({ t: a.goodput.t, y: a.goodput.t.map(() => a.goodput.rate), label: "", stroke: colour("quiet"), width: 1 });
  }
  const how = a.seeds > 1 ? `by group: mean and range of ${a.seeds} seeds` : "stacked by group";
  return { lines, bands, title: `Goodput ${how} (Mb/s)`, summary: a.goodput.groups.map((each) => each.group).join(", ") };
}

// Sums from the first group to each; the greatest is painted first, and the others over it.
function stacked({ t, groups }, paint) {
  const sums = cumulative({ t, groups }, false);
  const lines = sums.map(([group, y], n) => ({
    t, y, label: group, stroke: paint(group), fill: `${paint(group)}${n ? "aa" : "cc"}`, width: 1,
  }));
  const bands = sums.slice(1).map((_, n) => ({ series: [n + 2, n + 1], fill: `${paint(sums[n + 1][0])}aa` }));
  for (const line of lines.slice(1)) delete line.fill;
  return { lines, bands };
}

function cumulative({ groups }, isPlain) {
  let before = null;
  return groups.map(({ group, y }) => {
    before = y.map((value, n) => (value ?? 0) + (before && !isPlain ? before[n] : 0));
    return [group, before];
  });
}

function banded({ t, groups }, paint) {
  const lines = [];
  const bands = [];
  for (const { group, y, low, high } of groups) {
    const at = lines.length + 1;
    lines.push({ t, y, label: group, stroke: paint(group) }, ...edges(t, low, high));
    bands.push({ series: [at + 2, at + 1], fill: `${paint(group)}33` });
  }
  return { lines, bands };
}

// Invisible lines at the edges of a band.
function edges(t, low, high) {
  return [low, high].map((y) => ({ t, y, label: "", stroke: "transparent", width: 0 }));
}

function queue(a, b, models, paint, colour) {
  if (!a.queue) return { ...NOTHING, summary: "Nothing to draw: no queue was sampled." };
  const { t, y, low, high } = a.queue;
  const lines = [{ t, y, label: "delay", stroke: colour("accent") }];
  const bands = [];
  if (low) {
    lines.push(...edges(t, low, high));
    bands.push({ series: [3, 2], fill: `${colour("accent")}33` });
  }
  if (b?.queue) lines.push({ t: b.queue.t, y: b.queue.y, label: "B: delay", stroke: colour("alarm"), dash: DASHED });
  for (const { engine, picture } of models) {
    if (picture.queue) lines.push({ t: picture.queue.t, y: picture.queue.y, label: engine, stroke: colour("ink"), dash: DOTTED });
  }
  const of = a.queue.where === "the bottleneck" ? "" : ` of ${a.queue.where}`;
  const seeds = a.seeds > 1 ? `, mean and range of ${a.seeds} seeds` : "";
  return { lines, bands, title: `Queueing delay${of} (ms${seeds})`, summary: `Peak ${peak(y)} ms.` };
}

const peak = (values) => Number(values.reduce((most, value) => Math.max(most, value ?? 0), 0).toPrecision(3));

function events(a, b, _, paint, colour) {
  const lines = [];
  const { t } = a.events;
  for (const [kind, label, stroke] of [
    ["mark", "marks", colour("accent")], ["loss", "random losses", colour("quiet")], ["drop", "drops", colour("alarm")],
  ]) {
    const has = (picture) => picture?.events[kind].some((count) => count > 0);
    if (has(a)) lines.push({ t, y: a.events[kind], label, stroke, fill: `${stroke}99`, width: 0, bars: true });
    if (has(b)) lines.push({ t: b.events.t, y: b.events[kind], label: `B: ${label}`, stroke, dash: DASHED, width: 1.2, steps: true });
  }
  const ms = Number((1000 * a.events.width_s).toPrecision(3));
  const sum = (kind) => a.events[kind].reduce((total, count) => total + count, 0);
  const summary = `${sum("drop")} drops, ${sum("loss")} random losses, ${sum("mark")} marks in the first run.`;
  return { lines, bands: [], title: `Drops (red), random losses (grey) and marks (blue) in ${ms} ms`, summary };
}

export function phaseOf(a, b) {
  const lines = [];
  if (a.phase) lines.push({ x: a.phase.window, y: a.phase.backlog, colour: "accent" });
  if (b?.phase) lines.push({ x: b.phase.window, y: b.phase.backlog, colour: "alarm", dash: DASHED });
  return { lines, summary: lines.length ? "A trajectory in the order of time." : NOTHING.summary };
}
