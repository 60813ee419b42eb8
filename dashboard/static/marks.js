// Losses by cause, and changes a person made, as they stand in charts: each cause has a colour, a shape and a lane.

import { palette, projector } from "./theme.js";

/** the causes as the data name them (MARKS in charts/), and how they are shown */
export const CAUSES = [
  { cause: "corruption", label: "damaged on the air", shape: "tick" },
  { cause: "given up", label: "given up by the link", shape: "cross" },
  { cause: "congestion", label: "no room in a queue", shape: "diamond" },
];

/** The colour of a cause in the present theme. */
export function causeColour(index) {
  return palette()[CAUSES[index].cause.replace(" ", "-")];
}

/** Draw one loss mark around a point. */
export function drawShape(context, shape, x, y, size) {
  context.beginPath();
  if (shape === "tick") {
    context.moveTo(x, y - size);
    context.lineTo(x, y + size);
    context.stroke();
  } else if (shape === "cross") {
    context.moveTo(x - size, y - size);
    context.lineTo(x + size, y + size);
    context.moveTo(x - size, y + size);
    context.lineTo(x + size, y - size);
    context.stroke();
  } else {
    context.moveTo(x, y - size);
    context.lineTo(x + size, y);
    context.lineTo(x, y + size);
    context.lineTo(x - size, y);
    context.closePath();
    context.fill();
  }
}

/** Draw one run's marks of a direction of the link, or of both, into lanes; `laneY` gives the height of a cause's lane. */
export function drawMarks(context, toX, data, direction, low, high, laneY, size) {
  const taken = CAUSES.map(() => -Infinity);
  context.lineWidth = projector() ? 2 : 1.25;
  for (let i = firstFrom(data.marks, low); i < data.marks.length && data.marks[i].t <= high; i++) {
    const index = CAUSES.findIndex(({ cause }) => cause === data.marks[i].cause);
    if (index < 0 || (direction !== "both" && data.marks[i].link !== direction)) continue;
    const x = toX(data.marks[i].t);
    // two marks on one pixel are one
    if (x - taken[index] < (CAUSES[index].shape === "tick" ? 1.5 : size * 1.2)) continue;
    taken[index] = x;
    context.strokeStyle = context.fillStyle = causeColour(index);
    drawShape(context, CAUSES[index].shape, x, laneY(index), size);
  }
}

/** Losses along the time axis of a chart: a lane for each run, where shapes tell causes apart. */
export function drawRug(context, area, toX, runs, direction, low, high) {
  context.save();
  clip(context, area);
  const size = projector() ? 3.5 : 2.5;
  const lane = 2 * size + 2;
  context.globalAlpha = 0.65;
  runs.forEach(({ data }, row) => {
    const y = area.y + area.h - (runs.length - row - 0.5) * lane;
    drawMarks(context, toX, data, direction, low, high, () => y, size);
  });
  context.restore();
}

/** Changes a person made, as upright lines. */
export function drawNotes(context, area, toX, runs, low, high) {
  context.save();
  clip(context, area);
  context.strokeStyle = palette().note;
  context.lineWidth = projector() ? 2 : 1;
  context.setLineDash([3, 3]);
  for (const { data } of runs) {
    for (const { t } of data.notes) {
      if (t < low || t > high) continue;
      const x = Math.round(toX(t)) + 0.5;
      context.beginPath();
      context.moveTo(x, area.y);
      context.lineTo(x, area.y + area.h);
      context.stroke();
    }
  }
  context.restore();
}

/** The area between the bounds of a band: [time, value] of the lower one and of the upper one. */
export function drawBand(context, area, toPoint, colour, lower, upper) {
  context.save();
  clip(context, area);
  context.globalAlpha = 0.2;
  context.fillStyle = colour;
  context.beginPath();
  for (const point of [...upper, ...lower.reverse()]) context.lineTo(...toPoint(point));
  context.closePath();
  context.fill();
  context.restore();
}

/** The index of the first entry at or after a time. */
export function firstFrom(list, time) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle].t < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

function clip(context, area) {
  context.beginPath();
  context.rect(area.x, area.y, area.w, area.h);
  context.clip();
}
