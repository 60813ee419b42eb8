// The demo's chart: what the runs carry on one clock, what was broken and when, and the losses of each.
//
// Rules: a line is the mean of the last three seconds, at absolute multiples of its step, so that it does not shimmer
// while it moves; lines are named at their ends, so that no legend has to be learned; the range only grows.

import { el, mark, put, svg } from "./dom.js";
import { flows } from "./figures.js";
import { digits, prefixed } from "./format.js";
import { drawMarks, firstFrom } from "./marks.js";
import { niceRange, ticks, timeTicks } from "./scales.js";
import { lineStyle, onTheme, palette } from "./theme.js";
import { otherWord, runName, word } from "./words.js";

export const MEAN_S = 3;
const WINDOW_S = 60;
const LEAST_S = 20;
const DRAW_MS = 190;
const POINTS = 240;
const SHAPES = { damaged: "M6 1V11", left: "M2 2L10 10M2 10L10 2" };

/** What a run carries around a time: the mean of its flows over MEAN_S before it. */
export function carriedAt(data, time) {
  const means = flows(data).map((label) => data.series("goodput", label).mean(time - MEAN_S, time));
  const known = means.filter(Number.isFinite);
  return known.length ? known.reduce((sum, mean) => sum + mean, 0) : NaN;
}

export class Race {
  /** the highest rate so far, bit/s */
  top = 0;
  #runs = [];
  #breaks = [];
  #drawn = 0;
  #size = { width: 0, height: 0, font: 14 };

  constructor() {
    this.canvas = el("canvas", { "aria-hidden": "true" });
    this.plot = el("div", { class: "race-plot", role: "img" }, this.canvas);
    this.title = el("span", { class: "race-title" });
    this.unit = el("span", { class: "unit" });
    this.keys = { damaged: el("span"), left: el("span") };
    const key = (name, cause) =>
      el(
        "span",
        { class: "race-key" },
        svg(
          "svg",
          { viewBox: "0 0 12 12", class: `shape ${cause}`, "aria-hidden": "true" },
          svg("path", { d: SHAPES[name] }),
        ),
        this.keys[name],
      );
    this.node = el(
      "figure",
      { class: "race panel" },
      el("figcaption", {}, this.title, this.unit, key("damaged", "corruption"), key("left", "given-up")),
      this.plot,
    );
    new ResizeObserver(([{ contentRect }]) => {
      this.#size = { ...this.#size, width: contentRect.width, height: contentRect.height };
      this.draw(true);
    }).observe(this.plot);
    onTheme(() => this.draw(true));
  }

  show(runs, breaks) {
    this.#runs = runs;
    this.#breaks = breaks;
    this.top = 0;
    this.draw(true);
  }

  /** Draw what is new: the last minute, or of runs that have ended the whole time. */
  draw(force = false) {
    const now = performance.now();
    if (!force && now - this.#drawn < DRAW_MS) return;
    this.#drawn = now;
    put(this.title, word("chart"));
    mark(this.title, "title", otherWord("chart"));
    put(this.keys.damaged, word("timeMark"));
    put(this.keys.left, word("lostMark"));
    const { width, height } = this.#size;
    if (!this.plot.hasAttribute("aria-label")) mark(this.plot, "aria-label", word("chart"));
    if (width < 60 || height < 60) return;
    this.#size.font = parseFloat(getComputedStyle(this.plot).fontSize);
    const context = prepared(this.canvas, width, height);
    const end = Math.max(0, ...this.#runs.map(({ data }) => data.end));
    const over = this.#runs.length > 0 && this.#runs.every(({ data }) => !data.info.live);
    const low = over ? 0 : Math.max(0, end - WINDOW_S);
    const high = Math.max(end, low + LEAST_S);
    const lines = this.#runs.map((run) => this.#line(run, low, high));
    this.top = Math.max(this.top, ...lines.flatMap(({ points }) => points.map(([, value]) => value)));
    const largest = Math.max(this.top, 1000);
    const { factor, unit } = prefixed("bit/s", largest);
    put(this.unit, unit);
    this.#drawAll(context, lines, { low, high, top: niceRange(0, largest, { scale: "zero", unit: "bit/s" })[1], factor });
    const words = lines.map(({ name, points }) => `${name}: ${digits(points.at(-1)?.[1] / factor)} ${unit}`);
    mark(this.plot, "aria-label", `${word("chart")}. ${words.join("; ")}`);
  }

  #line(run, low, high) {
    const { data } = run;
    const step = Math.max(0.2, (high - low) / POINTS);
    const points = [];
    for (let k = Math.ceil(low / step); k * step <= Math.min(high, data.end); k++) {
      const value = carriedAt(data, k * step);
      if (Number.isFinite(value)) points.push([k * step, value]);
    }
    return { run, points, style: lineStyle(run.slot, 0), name: runName(run, this.#runs).name };
  }

  #drawAll(context, lines, { low, high, top, factor }) {
    const { width, height, font } = this.#size;
    const colours = palette();
    context.font = `${font}px ${colours.font}`;
    const names = Math.max(0, ...lines.map(({ name }) => context.measureText(name).width));
    // on a narrow screen the lines are named above it
    const named = names < width * 0.3;
    const lane = font * 1.15;
    const area = { x: font * 2.4, y: font * 1.5 };
    area.w = width - area.x - (named ? names + font * 1.1 : font * 0.6);
    area.h = height - area.y - font * 1.9 - lane * lines.length - font * 0.4;
    const toX = (time) => area.x + ((time - low) / (high - low)) * area.w;
    const toY = (value) => area.y + area.h - (value / top) * area.h;
    const end = Math.max(...this.#runs.map(({ data }) => data.end));
    this.#drawBreaks(context, area, toX, low, Math.min(high, end));
    drawAxes(context, area, { toX, toY, low, high, top, factor, font, width, bottom: height });
    for (const line of lines) drawLine(context, area, line, toX, toY, font);
    lines.forEach(({ run }, row) => {
      const y = area.y + area.h + font * 0.4 + (row + 0.5) * lane;
      context.fillStyle = lineStyle(run.slot, 0).colour;
      context.fillRect(area.x - font * 0.55, y - lane * 0.36, font * 0.22, lane * 0.72);
      drawMarks(context, toX, { marks: worst(run.data, low) }, "both", low, high, () => y, font * 0.34);
    });
    if (named) drawNames(context, area, lines, toX, toY, font);
  }

  /** The times in which something was broken, by the changes of controls. */
  #drawBreaks(context, area, toX, low, high) {
    const { font } = this.#size;
    const colours = palette();
    let free = 0;
    for (const { label, from, to } of broken(this.#runs, this.#breaks)) {
      if ((to ?? high) < low || from > high) continue;
      const left = Math.max(area.x, toX(from));
      const right = Math.min(area.x + area.w, toX(to ?? high));
      context.fillStyle = colours.note;
      context.globalAlpha = 0.2;
      context.fillRect(left, area.y, Math.max(right - left, 2), area.h);
      context.globalAlpha = 1;
      if (left < free) continue;
      context.fillStyle = colours.ink;
      context.textAlign = "left";
      context.textBaseline = "bottom";
      context.fillText(label, left, area.y - font * 0.2);
      free = left + context.measureText(label).width + font * 0.5;
    }
  }
}

/** The breaks of the runs: [{label, from, to}]; `to` is null while one is on. A break of both runs is one. */
export function broken(runs, breaks) {
  const found = [];
  const notes = runs.find(({ data }) => data.notes.length)?.data.notes ?? [];
  let on = null;
  for (const { t, name, value } of notes) {
    const which = breaks.find((each) => each.control === name && each.value === value);
    if (on && on.control === name) {
      on.to = t;
      on = null;
    }
    if (which) {
      on = { label: which.label, control: name, from: t, to: null };
      found.push(on);
    }
  }
  return found;
}

/** A mark for each time of a loss since `low`: the sender's loss where the link left it one, else the damaged frame. */
function worst(data, low) {
  const found = [];
  const link = data.mainLink;
  for (let i = firstFrom(data.marks, low); i < data.marks.length; i++) {
    const mark = data.marks[i];
    if (mark.link !== link || mark.cause === "congestion") continue;
    if (found.at(-1)?.t === mark.t) {
      if (mark.cause === "given up") found[found.length - 1] = mark;
    } else found.push(mark);
  }
  return found;
}

function drawAxes(context, area, { toX, toY, low, high, top, factor, font, bottom }) {
  const colours = palette();
  context.lineWidth = 1;
  context.fillStyle = colours.muted;
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const { v, label } of ticks(0, top, factor, Math.max(2, area.h / (3 * font)))) {
    const y = Math.round(toY(v)) + 0.5;
    context.strokeStyle = v === 0 ? colours.axis : colours.grid;
    line(context, area.x, y, area.x + area.w, y);
    context.fillText(label, area.x - font * 0.4, y);
  }
  context.textAlign = "center";
  context.textBaseline = "bottom";
  for (const { v, label } of timeTicks(low, high, area.w / (6 * font))) {
    const half = context.measureText(label).width / 2;
    context.fillText(label, Math.min(toX(v), area.x + area.w - half), bottom - font * 0.1);
  }
}

function drawLine(context, area, { points, style }, toX, toY, font) {
  if (points.length < 2) return;
  context.save();
  context.lineJoin = "round";
  context.strokeStyle = context.fillStyle = style.colour;
  context.beginPath();
  for (const [time, value] of points) context.lineTo(toX(time), toY(value));
  context.lineWidth = font * 0.2;
  context.stroke();
  context.lineTo(toX(points.at(-1)[0]), area.y + area.h);
  context.lineTo(toX(points[0][0]), area.y + area.h);
  context.globalAlpha = 0.1;
  context.fill();
  context.globalAlpha = 1;
  const [time, value] = points.at(-1);
  context.beginPath();
  context.arc(toX(time), toY(value), font * 0.32, 0, 2 * Math.PI);
  context.fill();
  context.restore();
}

/** The names beside the ends of the lines, apart from each other. */
function drawNames(context, area, lines, toX, toY, font) {
  const placed = lines
    .filter(({ points }) => points.length)
    .map(({ points, run, name }) => ({ x: toX(points.at(-1)[0]), y: toY(points.at(-1)[1]), slot: run.slot, name }))
    .sort((one, other) => one.y - other.y);
  const apart = font * 1.2;
  if (placed.length === 2 && placed[1].y - placed[0].y < apart) {
    const middle = (placed[0].y + placed[1].y) / 2;
    placed[1].y = Math.min(middle + apart / 2, area.y + area.h);
    placed[0].y = placed[1].y - apart;
    // two names above each other begin at the same place
    placed[0].x = placed[1].x = Math.max(placed[0].x, placed[1].x);
  }
  context.textAlign = "left";
  context.textBaseline = "middle";
  for (const { x, y, slot, name } of placed) {
    context.fillStyle = palette()[slot === "B" ? "text-b" : "text-a"];
    context.fillText(name, x + font * 0.7, y);
  }
}

function prepared(canvas, width, height) {
  const scale = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

function line(context, x0, y0, x1, y1) {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}
