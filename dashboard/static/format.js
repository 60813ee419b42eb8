// Numbers for people: prefixes, units, times. A missing value is a dash.

const NONE = "–";
const SI = [
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
  [1, ""],
];
const BINARY = [
  [2 ** 30, "Gi"],
  [2 ** 20, "Mi"],
  [2 ** 10, "Ki"],
  [1, ""],
];
const PREFIXED = { "bit/s": SI, Hz: SI, sps: SI, B: BINARY, bytes: BINARY, byte: BINARY };
const SHORT = { bytes: "B", byte: "B" };

/** The prefix that makes a magnitude readable: {factor, unit}, shown = value / factor. */
export function prefixed(unit, magnitude) {
  const prefixes = PREFIXED[unit];
  if (!prefixes) return { factor: 1, unit };
  const size = Math.abs(magnitude) * 1.0001;
  const [factor, prefix] = prefixes.find(([limit]) => size >= limit) ?? [1, ""];
  return { factor, unit: prefix + (SHORT[unit] ?? unit) };
}

/** A number with three digits that count, and as many decimals as that takes. */
export function digits(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return NONE;
  const size = Math.abs(value);
  const decimals = size >= 99.95 || size === 0 ? 0 : size >= 9.995 ? 1 : 2;
  return value.toFixed(decimals).replace("-", "−");
}

/** A number of things. */
export function count(value) {
  return Number.isInteger(value) ? value.toLocaleString("en") : digits(value);
}

/** A value and its unit: {number, unit}. */
export function quantity(value, unit) {
  if (value === null || value === undefined || Number.isNaN(value)) return { number: NONE, unit };
  const scale = prefixed(unit, value);
  return { number: digits(value / scale.factor), unit: scale.unit };
}

/** A value with its unit in one text; without a unit it counts things. */
export function text(value, unit) {
  if (!unit) return count(value);
  const shown = quantity(value, unit);
  return shown.number === NONE ? NONE : `${shown.number} ${shown.unit}`.trim();
}

/** Seconds of a run as minutes and seconds; tenths where asked for. */
export function clock(seconds, tenths = false) {
  if (!Number.isFinite(seconds)) return NONE;
  const sign = seconds < 0 ? "−" : "";
  const size = Math.abs(seconds);
  const whole = tenths ? Math.floor(size * 10 + 1e-6) / 10 : Math.round(size);
  const rest = (whole % 60).toFixed(tenths ? 1 : 0).padStart(tenths ? 4 : 2, "0");
  return `${sign}${Math.floor(whole / 60)}:${rest}`;
}

/** A wall-clock time (ISO text or Unix time in ns) in the reader's own zone. */
export function moment(when) {
  const date = typeof when === "number" ? new Date(when / 1e6) : new Date(when);
  if (!when || Number.isNaN(date.getTime())) return NONE;
  const pad = (number) => String(number).padStart(2, "0");
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  return `${day} ${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
}

/** A ratio, as in 2.1 ×. */
export function times(ratio) {
  return Number.isFinite(ratio) ? `${digits(ratio)} ×` : NONE;
}

const SCHEMES = {};
const SUMMARIES = {};

/** Take the labels of link schemes, {name: label}, and what each does, {name: summary}. */
export function learnSchemes(labels, summaries) {
  Object.assign(SCHEMES, labels);
  Object.assign(SUMMARIES, summaries);
}

/** A link scheme as people say it. */
export function scheme(name) {
  return SCHEMES[name] ?? name;
}

/** What a link scheme does, in a line; null where that is not known. */
export function schemeSummary(name) {
  return SUMMARIES[name] ?? null;
}
