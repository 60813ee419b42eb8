// Losses by cause and changes made, on the time axis of the charts: a lane for each, with names and counts in text.
//
// Rule kept: counts are those of the run's own counters, so that they are the same after a reload, and in the end those
// of its summary; marks are of the time shown.

import { el, put, svg } from "./dom.js";
import { count } from "./format.js";
import { CAUSES, drawMarks, firstFrom } from "./marks.js";
import { lineStyle, onTheme, palette, projector } from "./theme.js";

const SHAPES = { tick: "M6 1V11", cross: "M2 2L10 10M2 10L10 2", diamond: "M6 1L11 6L6 11L1 6Z" };
const COUNT_MS = 450;
/** marks of a change of both runs are no further apart */
const SAME_PX = 3;
/** from a mark to its words, and from these to what follows */
const BESIDE_PX = 5;
const AFTER_PX = 7;

export class Losses {
  #runs = [];
  #size = { width: 0, height: 0 };
  #drawn = "";
  #counted = 0;
  #timer = 0;

  constructor(view) {
    this.view = view;
    this.canvas = el("canvas", { "aria-hidden": "true" });
    this.plot = el(
      "div",
      { class: "losses-plot", tabindex: "0", role: "img", "aria-label": "Losses and changes over time" },
      this.canvas,
    );
    this.counts = CAUSES.map(() => el("span", { class: "losses-count" }));
    this.names = el(
      "div",
      { class: "losses-names" },
      CAUSES.map(({ cause, label, shape }, index) =>
        el(
          "div",
          { class: "losses-lane", "data-cause": cause },
          svg(
            "svg",
            { viewBox: "0 0 12 12", class: `shape ${shape} ${cause.replace(" ", "-")}`, "aria-hidden": "true" },
            svg("path", { d: SHAPES[shape] }),
          ),
          el("span", { class: "losses-label" }, label),
          this.counts[index],
        ),
      ),
      el(
        "div",
        { class: "losses-lane" },
        el("span", { class: "shape note-shape" }),
        el("span", { class: "losses-label" }, "changed by hand"),
      ),
    );
    this.figure = el(
      "figure",
      { class: "losses" },
      el("figcaption", { class: "visually-hidden" }, "Losses by cause"),
      this.names,
      this.plot,
    );
    new ResizeObserver(([{ contentRect }]) => {
      this.#size = contentRect;
      this.draw(true);
    }).observe(this.plot);
    view.attach(this.plot, () => ({ left: 0, width: this.#size.width }));
    onTheme(() => this.draw(true));
  }

  show(runs) {
    this.#runs = runs;
    this.draw(true);
  }

  draw(force = false) {
    const [low, high] = this.view.range();
    const signature = `${low} ${high} ${this.view.cursor} ${this.#runs.map(({ data }) => data.version)}`;
    if (!this.#runs.length || (!force && signature === this.#drawn)) return;
    this.#drawn = signature;
    this.#drawLanes(low, high);
    const since = performance.now() - this.#counted;
    if (force || since >= COUNT_MS) this.#count();
    // the newest counts of a run that ends have no later drawing
    else this.#timer ||= setTimeout(() => this.#count(), COUNT_MS - since);
  }

  #count() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#counted = performance.now();
    CAUSES.forEach(({ cause }, index) => {
      const several = this.#runs.length > 1;
      const texts = this.#runs.map(({ slot, data }) => `${several ? `${slot} ` : ""}${countOf(data, cause, this.view.direction)}`);
      put(this.counts[index], texts.join(" · "));
    });
  }

  #drawLanes(low, high) {
    const { width, height } = this.#size;
    const scale = devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * scale) || this.canvas.height !== Math.round(height * scale)) {
      this.canvas.width = Math.round(width * scale);
      this.canvas.height = Math.round(height * scale);
    }
    const context = this.canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    const colours = palette();
    const toX = (time) => ((time - low) / (high - low)) * width;
    const lane = height / (CAUSES.length + 1);
    const part = lane / this.#runs.length;
    context.strokeStyle = colours.grid;
    context.lineWidth = 1;
    for (let i = 1; i <= CAUSES.length; i++)
      line(context, 0, Math.round(i * lane) + 0.5, width, Math.round(i * lane) + 0.5);
    this.#runs.forEach(({ data }, row) => {
      const size = Math.min(projector() ? 6 : 4.5, part / 2 - 1);
      const laneY = (index) => index * lane + (row + 0.5) * part;
      drawMarks(context, toX, data, this.view.direction, low, high, laneY, size);
    });
    this.#drawNotes(context, toX, { low, high, y: CAUSES.length * lane, lane });
    if (this.view.cursor !== null) {
      context.strokeStyle = colours.muted;
      const x = Math.round(this.view.cursor * width) + 0.5;
      line(context, x, 0, x, height);
    }
  }

  /** What was changed, in words beside its mark, as far as there is room; a change of both runs once. */
  #drawNotes(context, toX, { low, high, y, lane }) {
    context.font = `${projector() ? 14 : 11}px ${palette().font}`;
    context.textBaseline = "middle";
    const found = [];
    for (const { slot, data } of this.#runs) {
      for (let i = firstFrom(data.notes, low); i < data.notes.length && data.notes[i].t <= high; i++) {
        const x = toX(data.notes[i].t);
        context.fillStyle = lineStyle(slot, 0).colour;
        context.fillRect(x - 1, y + 2, 2, lane - 4);
        found.push({ x, words: noteInWords(data, data.notes[i]) });
      }
    }
    found.sort((one, other) => one.x - other.x);
    context.fillStyle = palette().ink;
    let free = -Infinity;
    for (const { x, words } of found) {
      if (x < free) continue;
      const width = context.measureText(words).width;
      const next = found.find((other) => other.x > x + SAME_PX)?.x ?? Infinity;
      // before a mark that the next one follows soon, so that this one does not cross the words
      const before = x + BESIDE_PX + width + AFTER_PX > next && x - BESIDE_PX - width > free;
      context.fillText(words, before ? x - BESIDE_PX - width : x + BESIDE_PX, y + lane / 2 + 1);
      free = before ? x + SAME_PX : x + BESIDE_PX + width + AFTER_PX;
    }
  }
}

/** The losses of a cause since the run's start, in the direction shown, or in each. */
function countOf(data, cause, direction) {
  const known = (link) => {
    const found = data.links[link]?.losses?.[cause];
    return found == null ? "–" : count(found);
  };
  return direction === "both" ? `up ${known("up")}, down ${known("down")}` : known(direction);
}

/** A change in words, with the control's own label and unit where it is known. */
function noteInWords(data, { name, value }) {
  const control = data.controls.find((known) => known.name === name);
  const shown = value === true ? "on" : value === false ? "off" : value;
  return `${control?.label ?? name} ${shown} ${control?.unit ?? ""}`.trim();
}

function line(context, x0, y0, x1, y1) {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}
