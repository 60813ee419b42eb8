// Series of different times into the table a chart draws: common times, no more of them than pixels.
//
// Time is cut into steps at absolute multiples of a round number, so that lines do not shimmer while they move. Of the
// points of one series in one step the smallest and the largest remain, in their order: a short peak is never lost.

const STEPS = [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100];

/** The step for a span of seconds on so many pixels. */
export function stepFor(span, pixels) {
  const wanted = (2 * span) / Math.max(pixels, 50);
  return STEPS.find((step) => step >= wanted) ?? wanted;
}

/** Rows [time, value of each series]; null without a point, NaN where a line breaks. */
export function rowsOf(columns, low, high, step) {
  const half = step / 2;
  const first = Math.floor(low / half) - 2;
  const slots = new Array(Math.ceil((high - low) / half) + 5);
  const put = (slot, column, value) => {
    const index = Math.max(0, slot - first);
    if (index >= slots.length) return;
    slots[index] ??= [(index + first) * half, ...columns.map(() => null)];
    slots[index][column] = value;
  };
  columns.forEach((series, index) => thin(series, low, high, step, (slot, value) => put(slot, index + 1, value)));
  return slots.filter((row) => row !== undefined);
}

function thin({ t, v }, low, high, step, put) {
  const half = step / 2;
  let i = before(t, low);
  while (i < t.length && t[i] <= high) {
    const bucket = Math.floor(t[i] / step);
    let smallest = -1;
    let largest = -1;
    const begin = i;
    for (; i < t.length && t[i] <= high && Math.floor(t[i] / step) === bucket; i++) {
      if (Number.isNaN(v[i])) continue;
      if (smallest < 0 || v[i] < v[smallest]) smallest = i;
      if (largest < 0 || v[i] >= v[largest]) largest = i;
    }
    if (smallest < 0) put(2 * bucket, NaN);
    else if (i - begin === 1) put(Math.floor(t[begin] / half), v[begin]);
    else {
      put(2 * bucket, v[Math.min(smallest, largest)]);
      put(2 * bucket + 1, v[Math.max(smallest, largest)]);
    }
  }
}

/** The last point before a time: the line comes in from the edge. */
function before(t, time) {
  let low = 0;
  let high = t.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (t[middle] < time) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}
