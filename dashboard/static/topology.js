// The path of a packet: h1, the two stations with the air between them, h2; and how each direction of the link does.

import { el, mark, put, svg } from "./dom.js";
import { digits, scheme, schemeSummary, text } from "./format.js";

const UPDATE_MS = 450;
/** what a full bar of the queue stands for */
const QUEUE_FULL_BYTES = 64 * 1024;
const WAVE = "M0 10 Q 6 0 12 10 T 24 10 T 36 10 T 48 10 T 60 10 T 72 10 T 84 10 T 96 10 T 108 10 T 120 10";

export class Topology {
  #strips = [];
  #updated = 0;

  constructor(host) {
    this.host = host;
  }

  show(runs) {
    this.#strips = runs.map(({ slot, data }) => new Strip(slot, data, runs.length > 1));
    this.host.replaceChildren(...this.#strips.map(({ node }) => node));
    this.update(true);
  }

  update(force = false) {
    const now = performance.now();
    if (!force && now - this.#updated < UPDATE_MS) return;
    this.#updated = now;
    for (const strip of this.#strips) strip.update();
  }
}

class Strip {
  constructor(slot, data, several) {
    this.data = data;
    this.directions = { up: new Direction("up", "→"), down: new Direction("down", "←") };
    this.scheme = el("span", { class: "badge" });
    this.air = svg(
      "svg",
      { class: "air", viewBox: "0 0 120 20", preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("path", { d: WAVE }),
    );
    this.airWords = el("span", { class: "air-words" });
    this.node = el(
      "section",
      { class: "strip", "aria-label": `Path of run ${slot}` },
      el(
        "h3",
        { class: "strip-head" },
        several ? el("span", { class: "slot", "data-slot": slot }, slot) : null,
        el("span", { class: "strip-name" }, data.info.title || data.info.name),
        this.scheme,
      ),
      el(
        "div",
        { class: "path" },
        node("h1", "host"),
        el("span", { class: "wire" }),
        node("ST", "station"),
        el("div", { class: "air-box" }, this.directions.up.node, this.air, this.directions.down.node),
        node("BAS", "station"),
        el("span", { class: "wire" }),
        node("h2", "host"),
      ),
    );
  }

  update() {
    const { data } = this;
    const states = Object.values(data.links);
    const main = data.links[data.mainLink];
    const loss = main?.per ?? 0;
    mark(
      this.air,
      "data-state",
      states.some((state) => state.established === false) ? "down" : loss > 0.05 ? "poor" : "good",
    );
    const name = main?.scheme ?? data.info.scheme ?? "";
    put(this.scheme, scheme(name));
    mark(this.scheme, "title", schemeSummary(name));
    for (const [link, direction] of Object.entries(this.directions)) direction.update(data.links[link]);
  }
}

class Direction {
  constructor(link, arrow) {
    this.state = el("span", { class: "link-state" });
    this.rate = el("span", { class: "link-rate" });
    this.snr = el("span", { class: "link-snr" });
    this.fill = svg("rect", { x: 0, y: 0, width: 0, height: 6, class: "queue-fill" });
    this.queue = el("span", { class: "link-queue" });
    this.node = el(
      "div",
      { class: "link", "data-link": link },
      el("span", { class: "link-name" }, `${arrow} ${link}`),
      this.state,
      this.rate,
      this.snr,
      svg(
        "svg",
        { class: "queue-bar", viewBox: "0 0 40 6", "aria-hidden": "true" },
        svg("rect", { x: 0, y: 0, width: 40, height: 6, class: "queue-room" }),
        this.fill,
      ),
      this.queue,
    );
  }

  update(state) {
    if (!state) {
      put(this.state, "no state yet");
      return;
    }
    put(this.state, state.established ? "linked" : "no session");
    mark(this.state, "data-up", state.established ? "yes" : "no");
    put(this.rate, text(state.throughput_bps, "bit/s"));
    put(this.snr, state.snr_db == null ? "" : `SNR ${digits(state.snr_db)} dB`);
    this.snr.hidden = state.snr_db == null;
    mark(this.fill, "width", (40 * Math.min(1, (state.queue_bytes ?? 0) / QUEUE_FULL_BYTES)).toFixed(1));
    put(this.queue, `queue ${text(state.queue_bytes ?? 0, "B")}`);
  }
}

function node(name, kind) {
  return el("span", { class: `node ${kind}` }, el("b", {}, name), el("small", {}, kind));
}
