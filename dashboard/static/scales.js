// Round numbers for axes: ranges that hold values, and ticks on them.

import { clock, prefixed } from "./format.js";

const TIME_STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 3600];

/** A range with round ends around two values; from zero, or free in steps of five. */
export function niceRange(smallest, largest, { scale, unit }) {
  if (scale === "free") {
    const low = 5 * Math.floor((smallest - 1) / 5);
    const high = Math.max(low + 10, 5 * Math.ceil((largest + 1) / 5));
    return [low, unit === "%" && largest <= 100 ? Math.min(high, 100) : high];
  }
  const high = niceAbove(largest * 1.05, unit);
  return [0, unit === "%" && largest <= 100 ? Math.min(high, 100) : high];
}

/** Ticks at round numbers of the unit shown, at most so many. */
export function ticks(low, high, factor, most) {
  const [bottom, top] = [low / factor, high / factor];
  const coarse = (top - bottom) / Math.max(2, most);
  const power = 10 ** Math.floor(Math.log10(coarse));
  const step = power * [1, 2, 2.5, 5, 10].find((size) => size * power >= coarse * 0.999);
  const decimals = Math.max(0, -Math.floor(Math.log10(step)) + (step / power === 2.5 ? 1 : 0));
  const found = [];
  for (let i = Math.ceil(bottom / step - 1e-9); i * step <= top + step * 1e-9; i++) {
    found.push({ v: i * step * factor, label: (i * step).toFixed(decimals).replace("-", "−") });
  }
  return found;
}

/** Ticks at round times, at most so many; none where its label would stand below the vertical axis' lowest one. */
export function timeTicks(low, high, most) {
  const coarse = (high - low) / Math.max(2, most);
  const step = TIME_STEPS.find((size) => size >= coarse) ?? TIME_STEPS[TIME_STEPS.length - 1];
  const found = [];
  for (let i = Math.ceil((low + 0.04 * (high - low)) / step); i * step <= high; i++) {
    found.push({ v: i * step, label: clock(i * step, step < 1) });
  }
  return found;
}

function niceAbove(value, unit) {
  if (!(value > 0)) return 1;
  const base = prefixed(unit, value).factor;
  const scaled = value / base;
  const power = 10 ** Math.floor(Math.log10(scaled));
  const steps = [1, 1.5, 2, 3, 4, 5, 6, 8, 10];
  return base * power * steps.find((step) => step * power >= scaled);
}
