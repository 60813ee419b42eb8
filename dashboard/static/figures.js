// The large figures, readable across a room: those of each run, and the ratio of two runs.
//
// Rule kept: the figures of a run that has ended are its result, and stand until another run is shown.

import { el, mark, put } from "./dom.js";
import { digits, quantity, scheme, text, times } from "./format.js";

const UPDATE_MS = 450;
/** an older value is not shown as the present one */
const FRESH_S = 2.5;
const ALL_FLOWS = "all flows";

export class Figures {
  #runs = [];
  #updated = 0;

  constructor(host) {
    this.tiles = {
      goodput: new Tile("Goodput", "payload that the application received, 1 s mean"),
      throughput: new Tile("Throughput", "all bits on the air"),
      per: new Tile("Frame loss", "on the air → left for TCP"),
      snr: new Tile("SNR", "measured by the receiver"),
    };
    this.ratio = el("span", { class: "number" });
    this.words = el("p", { class: "verdict-words" });
    this.verdict = el(
      "section",
      { class: "tile verdict" },
      el("h3", {}, "Goodput compared"),
      el("div", { class: "verdict-body" }, this.ratio, this.words),
    );
    host.append(...Object.values(this.tiles).map(({ node }) => node), this.verdict);
  }

  show(runs) {
    this.#runs = runs;
    this.update(true);
  }

  update(force = false) {
    const now = performance.now();
    if (!force && now - this.#updated < UPDATE_MS) return;
    this.#updated = now;
    const values = this.#runs.map(({ slot, data }) =>
      data.info.live ? { slot, ended: false, ...newest(data) } : { slot, ended: true, ...result(data) },
    );
    const fill = (tile, shown) => tile.put(values.map((value) => ({ ...value, ...shown(value) })));
    fill(this.tiles.goodput, ({ goodput }) => quantity(goodput, "bit/s"));
    fill(this.tiles.throughput, ({ throughput }) => quantity(throughput, "bit/s"));
    fill(this.tiles.per, ({ before, after }) => ({ number: `${digits(before)} → ${digits(after)}`, unit: "%" }));
    fill(this.tiles.snr, ({ snr }) => quantity(snr, "dB"));
    this.tiles.snr.node.hidden = !this.#runs.some(({ data }) => data.info.charts?.includes("snr"));
    this.verdict.hidden = this.#runs.length !== 2;
    if (this.#runs.length !== 2) return;
    const { ratio, words } = comparison(this.#runs[0].data, this.#runs[1].data);
    put(this.ratio, times(ratio));
    put(this.words, words);
  }
}

class Tile {
  #lines = [];

  constructor(title, hint) {
    this.body = el("div", { class: "tile-values" });
    this.note = el("span", { class: "tile-note" });
    this.node = el("section", { class: "tile" }, el("h3", { title: hint }, title, " ", this.note), this.body);
  }

  /** Show [{slot, number, unit, ended}]; those of runs that have ended are results. */
  put(values) {
    if (this.#lines.length !== values.length) {
      this.#lines = values.map(() => ({
        slot: el("span", { class: "slot" }),
        number: el("span", { class: "number" }),
        unit: el("span", { class: "unit" }),
      }));
      this.body.replaceChildren(
        ...this.#lines.map(({ slot, number, unit }) => el("div", { class: "tile-value" }, slot, number, unit)),
      );
    }
    const ended = values.filter((value) => value.ended).map(({ slot }) => slot);
    put(this.note, ended.length === 0 ? "" : ended.length === values.length ? "result" : `${ended}: result`);
    values.forEach(({ slot, number, unit }, index) => {
      const line = this.#lines[index];
      put(line.slot, slot);
      mark(line.slot, "data-slot", slot);
      line.slot.hidden = values.length < 2;
      put(line.number, number);
      put(line.unit, unit);
    });
  }
}

function newest(data) {
  const link = data.mainLink;
  const state = data.links[link] ?? {};
  const goodputs = flows(data)
    .map((label) => data.series("goodput", label).at(data.end, FRESH_S))
    .filter(Number.isFinite);
  return {
    goodput: goodputs.length ? goodputs.reduce((sum, value) => sum + value, 0) : null,
    throughput: state.throughput_bps,
    before: percent(state.per),
    after: percent(state.residual),
    snr: state.snr_db ?? null,
  };
}

/** The figures of a whole run: those of its summary, or without one the means of what was recorded. */
export function result(data) {
  const link = data.mainLink;
  const summary = data.info.ended?.summary ?? {};
  const counted = summary.link?.[link] ?? {};
  const mean = (chart, label) => data.series(chart, label)?.mean(-Infinity, data.end);
  return {
    goodput: summary.goodput_bps ?? carried(data, data.end),
    throughput: summary.throughput_bps ?? mean("throughput", link),
    before: percent(counted.per) ?? mean("per", `${link} before`),
    after: percent(counted.residual_per) ?? mean("per", `${link} after`),
    snr: mean("snr", `${link} SNR`) ?? null,
  };
}

/** The labels of the goodput lines to add: the line of all flows if there is one, else one line per flow. */
export function flows(data) {
  const labels = data.labels("goodput");
  return labels.includes(ALL_FLOWS) ? [ALL_FLOWS] : labels;
}

function percent(share) {
  return share === null || share === undefined ? null : 100 * share;
}

/** The ratio of the mean goodputs of two runs since both began, or of their results, and a sentence about it. */
function comparison(a, b) {
  const end = Math.min(a.end, b.end);
  const over = !a.info.live && !b.info.live;
  const results = [a, b].map(({ info }) => info.ended?.summary?.goodput_bps);
  const known = over && results.every(Number.isFinite);
  const means = known ? results : [carried(a, end), carried(b, end)];
  if (!(end > 3) || !means.every((mean) => mean > 0))
    return { ratio: NaN, words: over ? "not both runs have carried anything" : "waiting for both runs" };
  const same = a.info.scheme === b.info.scheme;
  const names = [a, b].map((data, index) => (same ? `run ${"AB"[index]}` : scheme(data.info.scheme)));
  const order = means[0] >= means[1] ? [0, 1] : [1, 0];
  const [most, least] = order.map((index) => means[index]);
  const [more, less] = order.map((index) => names[index]);
  const span = over ? "in the whole run" : "so far";
  return {
    ratio: most / least,
    words: `${more} over ${less} ${span}: ${text(most, "bit/s")} against ${text(least, "bit/s")}`,
  };
}

/** The mean goodput of a run from its start to a time. */
export function carried(data, end) {
  const means = flows(data).map((label) => data.series("goodput", label).mean(0, end));
  return means.filter(Number.isFinite).reduce((sum, mean) => sum + mean, 0);
}
