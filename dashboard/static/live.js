// The live view: the choice of the runs shown, their stream, and the times of drawing.
//
// Rules: one stream for all runs shown; a frame is drawn in the next animation frame, so never in a hidden tab; without
// a choice by the user, the newest live run is A, and the run that began with it is B.

import { announce } from "./announce.js";
import { Charts } from "./charts.js";
import { Controls } from "./controls.js";
import { RunData } from "./data.js";
import { Demo } from "./demo.js";
import { el, mark, put } from "./dom.js";
import { downloads } from "./downloads.js";
import { Figures } from "./figures.js";
import { clock, scheme } from "./format.js";
import { Stream } from "./stream.js";
import { calm, store, stored } from "./theme.js";
import { TimeView } from "./timeview.js";
import { Topology } from "./topology.js";
import { Views } from "./views.js";

const WINDOWS = { 30: 30, 120: 120, all: Infinity };
const LATENCIES = 300;
const MESSAGE_MS = 15_000;
/** wider windows (s) move by less than a pixel in a tenth of a second */
const SLOW_WINDOW_S = 60;

export class Live {
  #stream = null;
  #runs = [];
  #chosen = [];
  #drawing = false;
  #drawn = 0;
  #newest = null;
  #told = new Map();
  #latencyShown = 0;
  #offered = "";
  /** the newest message of a run, and its time (ms) */
  message = { words: "", at: -Infinity };
  /** the stream's state; empty without a stream */
  connection = "";

  constructor(session, specs, latency) {
    this.session = session;
    this.latency = latency;
    this.root = document.getElementById("live");
    this.time = new TimeView();
    this.time.window = WINDOWS[stored("window")] ?? 30;
    this.charts = new Charts(part("charts"), specs, this.time);
    this.figures = new Figures(part("figures"));
    this.topology = new Topology(part("topology"));
    this.views = new Views(part("views"));
    this.controls = new Controls(part("controls"), session);
    this.demo = new Demo(document.getElementById("demo"), session);
    this.choosers = ["A", "B"].map((slot) => document.getElementById(`run-${slot.toLowerCase()}`));
    for (const chooser of this.choosers) chooser.addEventListener("change", () => this.#chooserChanged());
    this.#buildToolbar();
    session.onchange(() => this.update());
    document.addEventListener("visibilitychange", () => this.#soon());
  }

  /** Show these runs; for an empty list, the live ones. */
  choose(names) {
    this.#chosen = names;
    this.update();
  }

  get names() {
    return this.#runs.map(({ data }) => data.info.name);
  }

  get runs() {
    return this.#runs;
  }

  /** Update the runs shown from the session's runs. */
  update() {
    const { live } = this.session;
    const there = new Map(live.map((info) => [info.name, info]));
    const chosen = this.#chosen.filter((name) => there.has(name) || this.names.includes(name));
    const wanted = chosen.length ? [...new Set(chosen)] : followed(live, this.names);
    for (const { data } of this.#runs) {
      const info = there.get(data.info.name);
      if (info && info.epoch_ns === data.info.epoch_ns) data.info = { ...data.info, ...info };
      // a restarted server does not know the run
      if (!info && this.session.reachable) data.info = { ...data.info, live: false };
    }
    if (wanted.join() !== this.names.join()) this.#show(wanted, there);
    this.#connect(wanted.filter((name) => there.has(name)));
    this.root.classList.toggle("without-run", !this.#runs.length);
    this.#drawChoosers();
    this.#drawState();
    // the end of a run comes without new points
    if (this.time.paused === null) this.figures.update(true);
    this.demo.update();
    this.#tell();
  }

  pause() {
    this.time.set({ paused: this.time.paused === null ? this.time.end : null });
    announce(this.time.paused === null ? "The display goes on" : "The display stands still; the run goes on");
    this.#drawToolbar();
    this.#soon();
  }

  setWindow(key) {
    store("window", key);
    this.time.set({ window: WINDOWS[key], zoom: null });
    this.#drawToolbar();
  }

  // -- runs and their stream ---------------------------------------------------------------------------------

  #show(names, infos) {
    const known = new Map(this.#runs.map(({ data }) => [data.info.name, data]));
    this.#runs = names.map((name, index) => ({
      slot: "AB"[index],
      data: known.get(name) ?? new RunData(infos.get(name)),
    }));
    this.time.set({ paused: null, zoom: null });
    this.#showParts();
  }

  /** Keep a stream of exactly these runs, which the server knows. */
  #connect(names) {
    if (names.join() === (this.#stream?.runs ?? []).join()) return;
    this.#stream?.close();
    this.#stream = null;
    this.connection = "";
    if (!names.length) return;
    this.#stream = new Stream(names, {
      onframe: (frame) => this.#take(frame),
      onruns: () => this.session.refresh(),
      onstate: (state) => this.#connected(state),
    });
  }

  #showParts() {
    const links = this.#runs.length
      ? downloads(this.#runs.map(({ slot, data }) => ({ slot, name: data.info.name })))
      : [];
    part("downloads").replaceChildren(...links);
    const views = [this.charts, this.figures, this.topology, this.views, this.controls, this.demo];
    for (const view of views) view.show(this.#runs);
    this.#offered = this.#runs.map(({ data }) => data.info.charts).join();
  }

  #take(frame) {
    const retention = (this.session.state?.retention_s ?? 600) + 10;
    for (const { data } of this.#runs) {
      const part = frame.runs[data.info.name];
      if (!part) continue;
      data.take(part, retention);
      if (data.info.live && data.info.epoch_ns && part.series)
        this.#newest = { epochMs: data.info.epoch_ns / 1e6, end: data.end };
      if (part.controls || part.info) this.controls.update();
    }
    if (this.#runs.map(({ data }) => data.info.charts).join() !== this.#offered) this.#showParts();
    const moving = this.#runs.filter(({ data }) => data.info.live);
    this.time.end = Math.max(0, ...(moving.length ? moving : this.#runs).map(({ data }) => data.end));
    if (this.time.end > 1) this.charts.direct();
    if (frame.comment) this.demo.say(frame.comment);
    this.#tell();
    this.#soon();
  }

  #connected(state) {
    const before = this.connection;
    this.connection = state;
    this.#drawState();
    if (state === "reconnecting") {
      announce("The connection is lost; trying again");
      this.session.refresh();
    } else if (state === "live" && before === "reconnecting") announce("Connected again");
  }

  // -- drawing -----------------------------------------------------------------------------------------------

  #soon() {
    if (this.#drawing || document.hidden || !this.#runs.length || (this.root.hidden && !this.demo.visible)) return;
    this.#drawing = true;
    const since = performance.now() - this.#drawn;
    const pause = calm() ? 500 : this.time.window > SLOW_WINDOW_S && this.time.end > SLOW_WINDOW_S ? 200 : 0;
    if (since >= pause) requestAnimationFrame(() => this.#draw());
    else setTimeout(() => requestAnimationFrame(() => this.#draw()), pause - since);
  }

  #draw() {
    this.#drawing = false;
    this.#drawn = performance.now();
    if (this.demo.visible) {
      this.demo.draw();
      return;
    }
    if (this.time.paused !== null) return;
    this.charts.draw();
    this.figures.update();
    this.topology.update();
    this.views.update();
    const newest = this.#newest;
    this.#newest = null;
    // in a later task, after the browser has painted the points
    if (newest && this.time.zoom === null) setTimeout(() => this.#measure(newest), 0);
  }

  #measure({ epochMs, end }) {
    this.latency.push(Date.now() - epochMs - end * 1000);
    if (this.latency.length > LATENCIES) this.latency.shift();
    if (performance.now() - this.#latencyShown < 1000) return;
    this.#latencyShown = performance.now();
    const recent = this.latency.slice(-20).sort((one, other) => one - other);
    put(document.getElementById("latency"), `latency ${Math.round(recent[Math.floor(recent.length / 2)])} ms`);
  }

  // -- the header's and the toolbar's state ------------------------------------------------------------------

  #chooserChanged() {
    const [a, b] = this.choosers.map(({ value }) => value);
    const names = b && b !== a ? [a, b] : [a];
    location.hash = a === "" ? "#/" : `#/live/${names.map(encodeURIComponent).join("/")}`;
  }

  #drawChoosers() {
    const infos = new Map(
      [...this.session.live, ...this.#runs.map(({ data }) => data.info)].map((info) => [info.name, info]),
    );
    const options = [...infos.values()].map((info) => [
      info.name,
      `${info.title || info.name}${info.live ? "" : " (ended)"}`,
    ]);
    const first = [["", options.length ? "follow the newest" : "no run yet"], ...options];
    const second = [["", "nothing"], ...options.filter(([name]) => name !== this.names[0])];
    [first, second].forEach((list, index) => {
      const chooser = this.choosers[index];
      const signature = JSON.stringify(list);
      if (chooser.dataset.options !== signature) {
        chooser.dataset.options = signature;
        chooser.replaceChildren(...list.map(([value, words]) => el("option", { value }, words)));
      }
      chooser.value = this.names[index] ?? "";
      chooser.disabled = !options.length;
    });
  }

  #drawState() {
    const { reachable } = this.session;
    const live = this.#runs.some(({ data }) => data.info.live);
    const paused = this.time.paused !== null;
    const [state, words] =
      !reachable || this.connection === "reconnecting"
        ? ["reconnecting", "reconnecting"]
        : !this.#runs.length
          ? ["idle", "ready"]
          : live
            ? paused
              ? ["paused", "display paused"]
              : ["live", "live"]
            : ["ended", "ended"];
    const node = document.getElementById("connection");
    mark(node, "data-state", state);
    put(node.querySelector(".words"), words);
    if (state !== "live") put(document.getElementById("latency"), "");
  }

  /** Announce once each run that begins, ends or fails, and each link that is lost or comes up. */
  #tell() {
    for (const { slot, data } of this.#runs) {
      const { info } = data;
      const link = data.links[data.mainLink];
      const state = { live: info.live, error: info.ended?.error ?? null, up: link?.established };
      const before = this.#told.get(info.name) ?? {};
      this.#told.set(info.name, state);
      const name = `Run ${slot}, ${scheme(info.scheme ?? "")}`;
      if (state.live && before.live === undefined) announce(`${name}, is live`);
      if (before.live && !state.live) this.#say(state.error ? `${name}, failed: ${state.error}` : `${name}, has ended`);
      if (before.up && state.up === false) announce(`${name}: the link is lost`);
      if (before.up === false && state.up) announce(`${name}: the link is up`);
    }
    const last = Date.now() - this.message.at < MESSAGE_MS ? this.message.words : "";
    const troubles = this.#runs.map(trouble);
    const words = [...troubles, last].filter(Boolean).join(" ");
    const node = document.getElementById("message");
    put(node, words);
    mark(node, "data-trouble", troubles.some(Boolean));
    node.hidden = !words;
  }

  #say(words) {
    this.message = { words, at: Date.now() };
    announce(words);
  }

  #buildToolbar() {
    this.buttons = Object.fromEntries(
      Object.keys(WINDOWS).map((key) => [key, document.getElementById(`window-${key}`)]),
    );
    for (const [key, button] of Object.entries(this.buttons))
      button.addEventListener("click", () => this.setWindow(key));
    document.getElementById("directions").replaceWith(this.charts.directions.node);
    this.pauseButton = document.getElementById("pause");
    this.pauseButton.addEventListener("click", () => this.pause());
    this.zoomButton = document.getElementById("unzoom");
    this.zoomButton.addEventListener("click", () => this.time.set({ zoom: null }));
    this.range = document.getElementById("range");
    this.time.onchange(() => this.#drawToolbar());
    this.#drawToolbar();
  }

  #drawToolbar() {
    for (const [key, button] of Object.entries(this.buttons)) {
      mark(button, "aria-pressed", String(WINDOWS[key] === this.time.window && !this.time.zoom));
    }
    mark(this.pauseButton, "aria-pressed", String(this.time.paused !== null));
    this.zoomButton.hidden = !this.time.zoom;
    put(this.range, this.time.zoom ? this.time.zoom.map((time) => clock(time, true)).join(" to ") : "");
    this.#drawState();
  }
}

/** The lasting message about a run: its error, and the sources that are not drawn. */
function trouble({ slot, data }) {
  const sources = Object.entries(data.hidden).map(([kind, count]) => `${count} ${kind}`);
  const crowd = sources.length
    ? `Run ${slot} has more sources than charts have lines; not drawn: ${sources.join(", ")}.`
    : "";
  const error = data.info.ended?.error ? `Run ${slot} failed: ${data.info.ended.error}` : "";
  return `${error} ${crowd}`.trim();
}

/** The runs to show without a choice by the user: the newest live run and its twin, SLACP before its baseline.
 *  A pair stays a pair while one of the two goes on, and what has ended stays until another run begins. */
function followed(live, shown) {
  const first = live.find((info) => info.live);
  if (!first) return shown.length ? shown : live.length ? withTwin(live[0], live, live) : [];
  const stays = shown.includes(first.name) ? shown : [];
  return withTwin(
    first,
    live.filter((info) => info.live || stays.includes(info.name)),
    live,
  );
}

function withTwin(first, others, order) {
  const twin = others.find(
    (info) =>
      info.name !== first.name &&
      info.scenario === first.scenario &&
      info.tier === first.tier &&
      info.seed === first.seed,
  );
  const runs = order.filter((info) => info === first || info === twin);
  return runs.sort((one, other) => (one.scheme === "none") - (other.scheme === "none")).map(({ name }) => name);
}

function part(name) {
  return document.querySelector(`#live [data-part=${name}]`);
}
