// The view of a receiver: the constellation of its newest frame, fading out over the ones before, its spectrum with the
// highest level held, and the spectra of the last half minute as a waterfall. Drawn when a view comes; nothing is drawn
// for a run without radios.

import { el, put } from "./dom.js";
import { digits, text } from "./format.js";
import { calm, lineStyle, onTheme, palette, projector } from "./theme.js";

const EDGE = 1.6;
const SILENCE_DB = -200;
/** five a second are as good to the eye as ten */
const UPDATE_MS = 180;
/** spectra of a waterfall, and the levels that its colours tell apart, below the highest one of the spectrum (dB) */
const ROWS = 150;
const SPAN_DB = 60;

/** sizes are taken when they change: asking while drawing would lay the page out again and again */
const sizes = new Map();
const observer = new ResizeObserver((entries) =>
  entries.forEach(({ target, contentRect }) => sizes.set(target, contentRect)),
);

export class Views {
  #runs = [];
  #scopes = [];
  #link = "up";
  #updated = 0;

  constructor(host) {
    this.host = host;
    this.body = el("div", { class: "scopes" });
    this.choice = el("select", { id: "view-link", onchange: () => this.#choose(this.choice.value) });
    const reset = el(
      "button",
      {
        type: "button",
        class: "quiet",
        title: "forget the highest levels",
        onclick: () => this.#scopes.forEach((scope) => scope.reset()),
      },
      "Reset",
    );
    host.append(
      el(
        "div",
        { class: "panel-head" },
        el("h2", {}, "Receivers"),
        el("label", { class: "visually-hidden", for: "view-link" }, "Direction heard"),
        this.choice,
        reset,
      ),
      this.body,
    );
    host.hidden = true;
    onTheme(() => this.#scopes.forEach((scope) => scope.clear()));
  }

  show(runs) {
    this.#runs = runs;
    for (const scope of this.#scopes) scope.end();
    this.#scopes = runs.map(({ slot, data }) => new Scope(slot, data, runs.length > 1));
    this.body.replaceChildren(...this.#scopes.map(({ node }) => node));
    this.update(true);
  }

  update(force = false) {
    const now = performance.now();
    if (!force && now - this.#updated < UPDATE_MS) return;
    this.#updated = now;
    const links = [...new Set(this.#runs.flatMap(({ data }) => Object.keys(data.views)))].sort().reverse();
    if (links.length && links.join() !== [...this.choice.options].map(({ value }) => value).join()) {
      this.choice.replaceChildren(...links.map((link) => el("option", { value: link }, `direction ${link}`)));
      this.#link = links[0];
    }
    this.host.hidden = !links.length;
    for (const scope of this.#scopes) scope.update(this.#link);
  }

  #choose(link) {
    this.#link = link;
    for (const scope of this.#scopes) scope.reset();
    this.update(true);
  }
}

class Scope {
  #seen = null;
  #held = [];
  /** newest first */
  #rows = [];

  constructor(slot, data, several) {
    this.slot = slot;
    this.data = data;
    this.words = el("span", { class: "scope-words" });
    const name = `Run ${slot}`;
    this.constellation = el("canvas", { class: "constellation", role: "img", "aria-label": `${name}: constellation` });
    this.spectrum = el("canvas", { class: "spectrum", role: "img", "aria-label": `${name}: spectrum` });
    this.waterfall = el("canvas", { class: "waterfall", role: "img", "aria-label": `${name}: spectrum over time` });
    this.canvases = [this.constellation, this.spectrum, this.waterfall];
    this.node = el(
      "figure",
      { class: "scope" },
      el("figcaption", {}, several ? el("span", { class: "slot", "data-slot": slot }, slot) : null, this.words),
      ...this.canvases,
    );
    this.node.hidden = true;
    for (const canvas of this.canvases) observer.observe(canvas);
  }

  /** Let go of what is no longer shown. */
  end() {
    for (const canvas of this.canvases) {
      observer.unobserve(canvas);
      sizes.delete(canvas);
    }
  }

  reset() {
    this.#held = [];
    this.#rows = [];
    this.clear();
  }

  clear() {
    this.#seen = null;
    for (const canvas of this.canvases) canvas.width = canvas.width;
  }

  update(link) {
    const view = this.data.views[link];
    this.node.hidden = !view;
    if (!view || view === this.#seen) return;
    this.#seen = view;
    put(this.words, `${view.modulation || "no frame yet"}, ${text(view.rate_sps, "sps")}`);
    this.#drawConstellation(view);
    // a bin without power has no decibels
    const levels = view.spectrum_db.map((level) => level ?? SILENCE_DB);
    if (!levels.length) return;
    this.#hold(levels);
    const top = 10 * Math.ceil((Math.max(...this.#held) + 3) / 10);
    this.#drawSpectrum(view, levels, top);
    this.#drawWaterfall(view.t, levels, top);
  }

  #hold(levels) {
    if (this.#held.length !== levels.length) {
      this.#held = [...levels];
      this.#rows = [];
    }
    levels.forEach((level, i) => {
      if (level > this.#held[i]) this.#held[i] = level;
    });
  }

  #drawConstellation({ symbols, modulation }) {
    const { context, width, height, fresh } = prepared(this.constellation);
    if (!width) return;
    const colours = palette();
    // old points fade into the background: persistence without keeping the old frames
    context.globalAlpha = fresh || calm() ? 1 : 0.35;
    context.fillStyle = colours.surface;
    context.fillRect(0, 0, width, height);
    context.globalAlpha = 1;
    const toX = (i) => width / 2 + (i / EDGE) * (width / 2);
    const toY = (q) => height / 2 - (q / EDGE) * (height / 2);
    context.strokeStyle = colours.grid;
    context.lineWidth = 1;
    strokeLine(context, 0, height / 2, width, height / 2);
    strokeLine(context, width / 2, 0, width / 2, height);
    context.fillStyle = lineStyle(this.slot, 0).colour;
    context.globalAlpha = 0.55;
    const size = projector() ? 3 : 2;
    for (const [i, q] of symbols) context.fillRect(toX(i) - size / 2, toY(q) - size / 2, size, size);
    context.globalAlpha = 1;
    context.strokeStyle = colours.ink;
    for (const [i, q] of ideal(modulation)) {
      const [x, y] = [toX(i), toY(q)];
      strokeLine(context, x - 4, y, x + 4, y);
      strokeLine(context, x, y - 4, x, y + 4);
    }
  }

  #drawSpectrum({ center_hz: centre, rate_sps: rate }, levels, top) {
    const { context, width, height } = prepared(this.spectrum);
    if (!width) return;
    const colours = palette();
    const bottom = top - 80;
    const foot = 16;
    const toX = (i) => (i / (levels.length - 1)) * width;
    const toY = (level) => ((top - Math.max(level, bottom)) / (top - bottom)) * (height - foot);
    context.clearRect(0, 0, width, height);
    context.font = `11px ${palette().font}`;
    context.lineWidth = 1;
    for (let level = top - 20; level > bottom; level -= 20) {
      context.strokeStyle = colours.grid;
      strokeLine(context, 0, Math.round(toY(level)) + 0.5, width, Math.round(toY(level)) + 0.5);
      context.fillStyle = colours.muted;
      context.fillText(`${level}`.replace("-", "−"), 3, toY(level) - 3);
    }
    const trace = (values, colour, thickness) => {
      context.strokeStyle = colour;
      context.lineWidth = thickness;
      context.beginPath();
      values.forEach((level, i) => context.lineTo(toX(i), toY(level)));
      context.stroke();
    };
    trace(this.#held, colours.muted, 1);
    trace(levels, lineStyle(this.slot, 0).colour, projector() ? 2 : 1.4);
    context.fillStyle = colours.muted;
    const half = digits(rate / 2e6);
    for (const [x, align, words] of [
      [3, "left", `−${half}`],
      [width / 2, "center", `${(centre / 1e6).toFixed(0)} MHz`],
      [width - 3, "right", `+${half}`],
    ]) {
      context.textAlign = align;
      context.fillText(words, x, height - 4);
    }
    context.textAlign = "left";
  }

  #drawWaterfall(t, levels, top) {
    this.#rows.unshift({ t, levels });
    this.#rows.length = Math.min(this.#rows.length, ROWS);
    const { context, width, height } = prepared(this.waterfall);
    if (!width) return;
    const colours = palette();
    const shades = ramp([colours.surface, lineStyle(this.slot, 0).colour, colours.ink]);
    const image = new ImageData(levels.length, this.#rows.length);
    const pixels = new Uint32Array(image.data.buffer);
    this.#rows.forEach((row, y) => {
      row.levels.forEach((level, x) => {
        const share = Math.min(Math.max((level - top + SPAN_DB) / SPAN_DB, 0), 1);
        pixels[y * levels.length + x] = shades[Math.round(share * (shades.length - 1))];
      });
    });
    scratch.width = image.width;
    scratch.height = image.height;
    scratch.getContext("2d").putImageData(image, 0, 0);
    context.clearRect(0, 0, width, height);
    const filled = (height * image.height) / ROWS;
    context.drawImage(scratch, 0, 0, width, filled);
    context.font = `11px ${colours.font}`;
    context.fillStyle = colours.muted;
    context.fillText(`−${Math.round(t - this.#rows.at(-1).t)} s`, 3, Math.min(filled + 12, height - 4));
  }
}

/** a waterfall before it is scaled */
const scratch = document.createElement("canvas");
const ramps = new Map();

/** 256 shades between colours, as the words of ImageData. */
function ramp(colours) {
  const key = colours.join();
  if (!ramps.has(key)) {
    const line = document.createElement("canvas");
    line.width = 256;
    line.height = 1;
    const context = line.getContext("2d");
    const gradient = context.createLinearGradient(0, 0, line.width, 0);
    colours.forEach((colour, i) => gradient.addColorStop(i / (colours.length - 1), colour));
    context.fillStyle = gradient;
    context.fillRect(0, 0, line.width, 1);
    ramps.set(key, new Uint32Array(context.getImageData(0, 0, line.width, 1).data.buffer));
  }
  return ramps.get(key);
}

/** The ideal points of a modulation, with mean power 1; none where it is not known. */
export function ideal(modulation) {
  if (modulation === "bpsk")
    return [
      [-1, 0],
      [1, 0],
    ];
  const order = { qpsk: 4, qam4: 4, qam16: 16, qam64: 64, qam256: 256 }[modulation];
  if (!order) return [];
  const side = Math.sqrt(order);
  const norm = Math.sqrt((2 * (order - 1)) / 3);
  const levels = Array.from({ length: side }, (_, i) => (2 * i - side + 1) / norm);
  return levels.flatMap((i) => levels.map((q) => [i, q]));
}

function prepared(canvas) {
  const { width, height } = sizes.get(canvas) ?? { width: 0, height: 0 };
  const scale = devicePixelRatio || 1;
  const fresh = canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale);
  if (fresh) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  return { context, width, height, fresh };
}

function strokeLine(context, x0, y0, x1, y1) {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}
