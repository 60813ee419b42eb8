// One chart: a figure with the newest values, or those under the cursor, in its caption, and a plot by dygraphs.
//
// Rules: a chart draws only when it is on the screen and something has changed; its vertical range grows at once and
// shrinks late, so that the picture stands still; captions change twice a second at most, so that they can be read.

import { Axes } from "./axes.js";
import { el, mark, put, svg } from "./dom.js";
import { clock, digits, prefixed } from "./format.js";
import { inDirection, isBound, ordered, shortened } from "./labels.js";
import { drawBand, drawNotes, drawRug } from "./marks.js";
import { rowsOf, stepFor } from "./rows.js";
import { niceRange, ticks, timeTicks } from "./scales.js";
import { boundStyle, lineStyle, onTheme, palette, projector } from "./theme.js";

/** charts on which losses explain what is seen */
const WITH_RUG = ["goodput", "cwnd"];
const CAPTION_MS = 450;
const SHRINK_AFTER = 20;
const TABLE_ROWS = 30;

// dygraphs' legend sets style attributes in markup, which the page's policy forbids; ours is the caption
const { Legend, Axes: ElementAxes } = Dygraph.Plugins;
Dygraph.PLUGINS = [Axes, ...Dygraph.PLUGINS.filter((plugin) => plugin !== Legend && plugin !== ElementAxes)];

export class Chart {
  #runs = [];
  #lines = [];
  #rows = [];
  #hidden = new Set();
  #graph = null;
  #visible = false;
  #range = null;
  #small = 0;
  #width = 0;
  #drawn = "";
  #captioned = 0;
  #unit = "";
  #factor = 1;

  constructor(spec, view) {
    this.spec = spec;
    this.view = view;
    this.unit = el("span", { class: "unit" }, spec.unit);
    this.legend = el("div", { class: "legend" });
    this.plot = el("div", { class: "plot" });
    this.frame = el(
      "div",
      { class: "plot-frame", tabindex: "0", role: "img", "aria-label": `${spec.title} over time` },
      this.plot,
    );
    this.empty = el("p", { class: "plot-empty" }, "no values yet");
    this.frame.append(this.empty);
    this.table = el("table");
    this.details = el(
      "details",
      { class: "values" },
      el("summary", {}, "Values"),
      el("div", { class: "scroll" }, this.table),
    );
    this.details.addEventListener("toggle", () => this.#fillTable());
    const title = el("span", { class: "chart-title", title: spec.description ?? "" }, spec.title, " ", this.unit);
    this.figure = el(
      "figure",
      { class: "chart", "data-chart": spec.key },
      el("figcaption", {}, title, this.details, this.legend),
      this.frame,
    );
    new IntersectionObserver((entries) => {
      this.#visible = entries[entries.length - 1].isIntersecting;
      this.draw();
    }).observe(this.frame);
    // sizes are taken when they change: asking while drawing would lay the page out again and again
    new ResizeObserver(([{ contentRect }]) => this.#resized(contentRect.width)).observe(this.frame);
    view.attach(this.frame, () => this.#area());
    onTheme(() => {
      this.#graph?.destroy();
      this.#graph = null;
      this.#linesChanged();
      this.draw(true);
    });
  }

  /** Show runs: [{slot, data}]. */
  show(runs) {
    this.#runs = runs;
    this.#range = null;
    this.#linesChanged();
    this.draw(true);
  }

  /** Draw the new points if the chart is visible. */
  draw(force = false) {
    if (!this.#visible || !this.#runs.length) return;
    const [low, high] = this.view.range();
    const versions = this.#runs.map(({ data }) => data.version).join();
    const signature = `${low} ${high} ${versions} ${this.#hidden.size}`;
    if (force || signature !== this.#drawn) {
      this.#drawn = signature;
      if (this.#labelsChanged()) this.#linesChanged();
      this.#drawPlot(low, high);
    }
    this.#drawCursor();
    this.#caption(force);
  }

  get shownLines() {
    return this.#lines.filter((line) => !this.#hidden.has(line.key));
  }

  // -- lines and their legend --------------------------------------------------------------------------------

  #labels(data) {
    return ordered(data.labels(this.spec.key).filter((label) => inDirection(label, this.view.direction)));
  }

  #labelsChanged() {
    const keys = this.#runs.flatMap(({ slot, data }) => this.#labels(data).map((label) => `${slot} ${label}`));
    return keys.join() !== this.#lines.map(({ key }) => key).join();
  }

  #linesChanged() {
    this.#lines = this.#runs.flatMap(({ slot, data }) => {
      const labels = this.#labels(data);
      const names = shortened(this.spec.key, labels);
      let own = -1;
      return labels.map((label, index) => {
        const bound = isBound(label);
        if (!bound) own++;
        const style = lineStyle(slot, own);
        return {
          key: `${slot} ${label}`,
          slot,
          label,
          name: names[index],
          series: data.series(this.spec.key, label),
          bound,
          style: bound ? boundStyle(style) : style,
        };
      });
    });
    this.#range = null;
    this.#graph?.destroy();
    this.#graph = null;
    const several = this.#runs.length > 1;
    this.legend.replaceChildren(
      ...this.#runs.map(({ slot }) =>
        el(
          "div",
          { class: "legend-run" },
          several ? el("span", { class: "legend-slot", "data-slot": slot }, slot) : null,
          this.#lines.filter((line) => line.slot === slot).map((line) => this.#chip(line, several)),
        ),
      ),
    );
  }

  #chip(line, several) {
    const { colour, dash, width } = line.style;
    line.output = el("span", { class: "chip-value" });
    line.chip = el(
      "button",
      {
        type: "button",
        class: "chip",
        "aria-pressed": String(!this.#hidden.has(line.key)),
        "aria-label": `${line.label}${several ? ` of ${line.slot}` : ""}`,
        title: `show or hide ${line.label}${several ? ` of ${line.slot}` : ""}`,
        onclick: () => this.#toggle(line),
      },
      svg(
        "svg",
        { class: "chip-line", viewBox: "0 0 28 8", "aria-hidden": "true" },
        svg("line", {
          x1: 0,
          y1: 4,
          x2: 28,
          y2: 4,
          stroke: colour,
          "stroke-width": width + 0.4,
          "stroke-dasharray": dash?.join(" ") ?? null,
        }),
      ),
      el("span", { class: "chip-label" }, line.name),
      line.output,
    );
    return line.chip;
  }

  #toggle(line) {
    if (!this.#hidden.delete(line.key)) this.#hidden.add(line.key);
    mark(line.chip, "aria-pressed", !this.#hidden.has(line.key) ? "true" : "false");
    this.#graph?.destroy();
    this.#graph = null;
    this.#range = null;
    this.draw(true);
  }

  #caption(force) {
    const now = performance.now();
    const time = this.view.time();
    if (!force && time === null && now - this.#captioned < CAPTION_MS) return;
    this.#captioned = now;
    put(this.unit, this.#unit || this.spec.unit);
    for (const { series, output } of this.#lines) {
      const value = time === null ? series.at(this.view.paused ?? Infinity) : series.at(time, 2);
      put(output, digits(value / this.#factor));
    }
    if (this.details.open) this.#fillTable();
  }

  // -- the plot ----------------------------------------------------------------------------------------------

  #drawPlot(low, high) {
    const lines = this.shownLines;
    const width = this.#width;
    const rows = lines.length
      ? rowsOf(
          lines.map(({ series }) => series),
          low,
          high,
          stepFor(high - low, width),
        )
      : [];
    this.empty.hidden = rows.length > 0;
    if (!rows.length || width < 80) return;
    const [bottom, top] = this.#valueRange(rows, low);
    this.#rows = rows;
    // a little room, so that the label of the topmost tick has its place
    const options = { file: rows, dateWindow: [low, high], valueRange: [bottom, top + 0.02 * (top - bottom)] };
    if (this.#graph) this.#graph.updateOptions(options);
    else {
      this.#graph = new Dygraph(this.plot, rows, { ...this.#options(lines), ...options });
      // the layer above the plot holds the cursor alone, and dygraphs wipes it with every drawing: a hidden one is free
      this.#graph.canvas_.hidden = true;
    }
  }

  #options(lines) {
    const colours = palette();
    const large = projector();
    const series = Object.fromEntries(
      lines.map(({ key, style }) => [
        key,
        { color: style.colour, strokePattern: style.dash, strokeWidth: style.width },
      ]),
    );
    return {
      labels: ["t", ...lines.map(({ key }) => key)],
      series,
      legend: "never",
      connectSeparatedPoints: true,
      interactionModel: {},
      gridLineColor: colours.grid,
      gridLineWidth: 1,
      highlightCircleSize: large ? 4 : 3,
      rightGap: 8,
      axes: {
        x: { ticker: (low, high, pixels) => timeTicks(low, high, pixels / (large ? 90 : 65)), drawGrid: false },
        y: { ticker: (low, high, pixels) => ticks(low, high, this.#factor, pixels / (large ? 40 : 30)) },
      },
      underlayCallback: (context, area, graph) => this.#underlay(context, area, graph),
    };
  }

  #underlay(context, area, graph) {
    const toX = (time) => graph.toDomXCoord(time);
    const [low, high] = graph.xAxisRange();
    this.#drawBands(context, area, graph);
    drawNotes(context, area, toX, this.#runs, low, high);
    if (WITH_RUG.includes(this.spec.key))
      drawRug(context, area, toX, this.#runs, this.view.direction, low, high);
  }

  /** Fill the bands: a lower bound and the upper one behind it. */
  #drawBands(context, area, graph) {
    const toPoint = ([time, value]) => [graph.toDomXCoord(time), graph.toDomYCoord(value)];
    const points = (index) =>
      this.#rows.map((row) => [row[0], row[index + 1]]).filter(([, value]) => Number.isFinite(value));
    const lines = this.shownLines;
    for (let i = 1; i < lines.length; i++) {
      if (!lines[i - 1].bound || !lines[i].bound) continue;
      drawBand(context, area, toPoint, lines[i].style.colour, points(i - 1), points(i));
      i++;
    }
  }

  /** The vertical range in round numbers; it shrinks only when it has been too large for a while. */
  #valueRange(rows, low) {
    let smallest = Infinity;
    let largest = -Infinity;
    for (const row of rows) {
      if (row[0] < low) continue;
      for (let i = 1; i < row.length; i++) {
        if (row[i] < smallest) smallest = row[i];
        if (row[i] > largest) largest = row[i];
      }
    }
    if (largest < smallest) return this.#range ?? [0, 1];
    const wanted = niceRange(smallest, largest, this.spec);
    const [bottom, top] = this.#range ?? wanted;
    const roomy = this.#range && wanted[0] >= bottom && wanted[1] <= top;
    this.#small = roomy && (wanted[0] > bottom || wanted[1] < top) ? this.#small + 1 : 0;
    if (!roomy || this.#small > SHRINK_AFTER) {
      this.#range = roomy ? wanted : [Math.min(bottom, wanted[0]), Math.max(top, wanted[1])];
      this.#small = 0;
    }
    const { factor, unit } = prefixed(this.spec.unit, Math.max(Math.abs(this.#range[0]), Math.abs(this.#range[1])));
    this.#factor = factor;
    this.#unit = unit;
    return this.#range;
  }

  #drawCursor() {
    const graph = this.#graph;
    if (!graph) return;
    const time = this.view.time();
    const canvas = graph.canvas_;
    const context = graph.canvas_ctx_;
    canvas.hidden = time === null;
    if (time === null) return;
    const area = graph.getArea();
    const x = Math.round(graph.toDomXCoord(time)) + 0.5;
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.strokeStyle = palette().muted;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, area.y);
    context.lineTo(x, area.y + area.h);
    context.stroke();
    for (const { series, style } of this.shownLines) {
      const value = series.at(time, 2);
      if (Number.isNaN(value)) continue;
      context.fillStyle = style.colour;
      context.beginPath();
      context.arc(x, graph.toDomYCoord(value), projector() ? 4.5 : 3, 0, 2 * Math.PI);
      context.fill();
    }
    context.fillStyle = palette().muted;
    context.font = `${projector() ? 15 : 11}px ${palette().font}`;
    context.textAlign = x > area.x + area.w - 60 ? "right" : "left";
    context.fillText(`${clock(time, true)}`, x + (context.textAlign === "left" ? 5 : -5), area.y + 11);
  }

  #area() {
    const area = this.#graph?.getArea();
    return area ? { left: area.x, width: area.w } : { left: 0, width: this.#width };
  }

  #resized(width) {
    this.#width = width;
    this.#graph?.resize();
    this.draw(true);
  }

  // -- the table for screen readers --------------------------------------------------------------------------

  #fillTable() {
    if (!this.details.open) return;
    const [low, high] = this.view.range();
    const end = Math.min(high, ...this.#runs.map(({ data }) => Math.max(data.end, low)));
    const step = Math.max(1, Math.ceil((end - low) / TABLE_ROWS));
    const times = [];
    for (let time = Math.floor(end); time >= low && times.length < TABLE_ROWS; time -= step) times.push(time);
    const heads = this.#lines.map(({ slot, label }) => (this.#runs.length > 1 ? `${slot} ${label}` : label));
    this.table.replaceChildren(
      el("caption", {}, `${this.spec.title}, ${this.#unit || this.spec.unit}`),
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          ["time", ...heads].map((head) => el("th", { scope: "col" }, head)),
        ),
      ),
      el(
        "tbody",
        {},
        times.map((time) =>
          el(
            "tr",
            {},
            el("th", { scope: "row" }, clock(time)),
            this.#lines.map(({ series }) => el("td", {}, digits(series.at(time, 2) / this.#factor))),
          ),
        ),
      ),
    );
  }
}
