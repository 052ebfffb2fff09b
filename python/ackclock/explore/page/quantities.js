// Numbers with units, as a scenario file has them, and the positions of sliders.

export const STEPS = 1000;

// Ranges of the sliders: logarithmic but for counts. A chance begins with 0.
const RANGES = {
  rate: [1e5, 1e10], time: [1e-4, 1], duration: [1, 120], chance: [1e-5, 0.1], count: [1, 50],
  "size bdp": [0.05, 20], "size bdp/sqrt(n)": [0.05, 20], "size p": [1, 20000], "size B": [1000, 1e8],
};

export function range(knob) {
  if (knob.key === "duration") return RANGES.duration;
  if (knob.key === "repeats") return [1, 10];
  return RANGES[knob.kind === "size" ? `size ${knob.unit}` : knob.kind];
}

export function position(knob, value) {
  const [low, high] = range(knob);
  if (knob.kind === "count") return value;
  if (knob.kind === "chance" && value === 0) return 0;
  const share = Math.log(value / low) / Math.log(high / low);
  return Math.round(STEPS * Math.min(1, Math.max(0, share)));
}

// The value at a slider's position, as it is written in the file.
export function written(knob, at) {
  const [low, high] = range(knob);
  if (knob.kind === "count") return at;
  if (knob.kind === "chance" && at === 0) return 0;
  const value = low * (high / low) ** (at / STEPS);
  return text(knob, value);
}

function text(knob, value) {
  if (knob.kind === "rate") return scaled(value, [[1e9, "Gbit"], [1e6, "Mbit"], [1e3, "kbit"]]);
  if (knob.kind === "time") return scaled(value, [[1, "s"], [1e-3, "ms"], [1e-6, "us"]]);
  if (knob.kind === "chance") return Number(value.toPrecision(2));
  if (knob.unit === "p") return `${Math.round(value)}p`;
  if (knob.unit === "B") return scaled(value, [[1e6, "MB"], [1e3, "KB"], [1, "B"]]);
  return `${Number(value.toPrecision(3))}${knob.unit}`;
}

function scaled(value, units) {
  const [factor, unit] = units.find(([size]) => value >= size * 0.9995) ?? units.at(-1);
  return `${Number((value / factor).toPrecision(3))}${unit}`;
}
