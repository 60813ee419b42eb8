// The demo, for an audience: one sentence on what happens, both runs side by side, their race on one clock, what a
// presenter can break, and the result, which stays when the runs have ended.
//
// Read first: live.js, whose runs these are. Rules: words are plain unless somebody asks for terms (words.js); a sentence
// stands long enough to be read; figures change twice a second.

import { announce } from "./announce.js";
import { post, runPath } from "./api.js";
import { Breaker } from "./breaker.js";
import { el, mark, put, svg } from "./dom.js";
import { carried, result } from "./figures.js";
import { clock, count, digits, prefixed, text, times } from "./format.js";
import { Race, carriedAt } from "./race.js";
import { Tour } from "./tour.js";
import { otherWord, role, runName, setTerms, shortName, terms, word } from "./words.js";
import { Unlock } from "./unlock.js";

const UPDATE_MS = 450;
/** a sentence stands so long, longer where the next one only has other figures; some topics do not wait */
const HOLD_MS = 4000;
const SAME_MS = 8000;
const URGENT = ["fade", "burst", "interferer", "half", "counting", "over"];
const LOSS_S = 2;
/** a link that loses more is drawn as a poor one */
const POOR = 0.02;
const NOTHING = {
  kind: "none",
  plain: "Two radio links over the same channel, one of them with repair.",
  terms: "Two runs of one scenario and one seed: no repair, and SLACP.",
};
const LATE = "This machine was too busy to keep the clock, so the figures are not those of the channel alone.";
const INTRO =
  "Two senders send as fast as they can across a radio channel that fades. All is the same for both, but one of the links " +
  "repairs its losses by itself. You can break the channel, and see who recovers.";
/** what the run that does better has, in the words beside the ratio */
const COMPARED = { repaired: "as much with repair", told: "as much for the sender that is told" };
const BETTER = Object.keys(COMPARED);
const WAVE = "M0 8 Q 10 0 20 8 T 40 8 T 60 8 T 80 8 T 100 8 T 120 8";

export class Demo {
  #runs = [];
  #lanes = [];
  #updated = 0;
  #said = null;
  #saidAt = -Infinity;
  #next = null;
  #timer = 0;
  #drawTimer = 0;

  constructor(root, session) {
    this.root = root;
    this.session = session;
    this.sentence = el("p", { class: "comment-words", role: "status" });
    this.clock = el("span", { class: "comment-clock", role: "timer", "aria-label": "Time of the runs" });
    this.termsSwitch = el("input", {
      type: "checkbox",
      role: "switch",
      id: "terms",
      onchange: () => this.#useTerms(this.termsSwitch.checked),
    });
    this.termsSwitch.checked = terms();
    this.lanes = el("div", { class: "lanes" });
    this.tour = new Tour(session);
    this.score = new Score(() => this.#stop(), () => this.#start(), () => this.tour.act("begin"));
    this.race = new Race();
    this.breaker = new Breaker(session, () => this.race.show(this.#runs, this.breaker.breaks));
    this.unlock = new Unlock(session, "To start and break it, give the token the dashboard printed when it started");
    root.append(
      this.tour.node,
      el(
        "div",
        { class: "comment panel" },
        this.sentence,
        el(
          "div",
          { class: "comment-side" },
          this.clock,
          el("label", { class: "terms", for: "terms", title: "Technical terms (t)" }, this.termsSwitch, "Technical terms"),
        ),
      ),
      el("div", { class: "stage" }, this.lanes, this.score.node),
      this.race.node,
      this.breaker.node,
      this.unlock.node,
    );
    this.show([]);
  }

  get visible() {
    return !this.root.hidden;
  }

  /** Show runs: [{slot, data}]; the one without repair comes first, as in the story. */
  show(runs) {
    const ordered = [...runs].sort((one, other) => BETTER.includes(role(one, runs)) - BETTER.includes(role(other, runs)));
    const names = (list) => list.map(({ data }) => data.info.name).join();
    if (names(ordered) !== names(this.#runs)) {
      this.#said = this.#next = null;
      this.#saidAt = -Infinity;
    }
    this.#runs = ordered;
    this.#lanes = ordered.map((run) => new Lane(run, ordered));
    this.lanes.replaceChildren(...this.#lanes.map(({ node }) => node));
    this.race.show(ordered, this.breaker.breaks);
    this.breaker.show(ordered);
    this.update();
  }

  /** Take the newest sentence of the server's. */
  say(comment) {
    this.#next = comment;
    this.#advance();
  }

  /** Update all that does not come with points: states, rights, words. */
  update() {
    const live = this.#runs.some(({ data }) => data.info.live);
    mark(this.root, "data-state", !this.#runs.length ? "none" : live ? "live" : "over");
    mark(this.root, "data-tour", this.tour.on ? "" : null);
    this.tour.update();
    this.unlock.node.hidden = this.session.authorised || !this.session.state?.starter;
    this.breaker.update();
    this.#advance();
    this.draw(true);
  }

  draw(force = false) {
    if (!this.visible) return;
    this.race.draw(force);
    const since = performance.now() - this.#updated;
    if (!force && since < UPDATE_MS) {
      // the newest points of runs that have ended have no later drawing
      this.#drawTimer ||= setTimeout(() => this.draw(true), UPDATE_MS - since);
      return;
    }
    clearTimeout(this.#drawTimer);
    this.#drawTimer = 0;
    this.#updated = performance.now();
    put(this.clock, this.#runs.length ? clock(Math.max(...this.#runs.map(({ data }) => data.end))) : "");
    const figures = this.#runs.map(({ data }) => (data.info.live ? newest(data) : result(data)));
    // one unit for all rates: those of two runs can be compared by their digits
    const rates = figures.map(({ goodput }) => goodput).filter(Number.isFinite);
    const scale = prefixed("bit/s", Math.max(this.race.top, ...rates));
    this.#lanes.forEach((lane, index) => lane.update(figures[index], scale));
    this.score.update(this.#runs, this.session, scale);
    this.breaker.update();
  }

  /** What keys do: break it by name, or switch the terms. */
  press(name) {
    if (name === "terms") this.#useTerms(!terms());
    else if (name.startsWith("tour ")) this.tour.act(name.slice(5));
    else this.breaker.start(name);
  }

  #useTerms(on) {
    setTerms(on);
    this.termsSwitch.checked = on;
    for (const lane of this.#lanes) lane.rename();
    this.#write();
    this.update();
    announce(on ? "Technical terms" : "Plain words");
  }

  /** Show the newest sentence as soon as the one before has stood long enough. */
  #advance() {
    clearTimeout(this.#timer);
    const told = this.tour.sentence(this.#next);
    if (told) {
      if (told.plain !== this.#said?.plain) this.#saidAt = performance.now();
      this.#said = told;
      this.#write();
      return;
    }
    if (!this.#runs.length) {
      this.#said = NOTHING;
      this.#write();
      return;
    }
    const next = this.#next;
    if (!next || next === this.#said) return;
    const known = this.#said;
    const urgent = !known || (next.kind !== known.kind && URGENT.includes(next.kind));
    const hold = next.kind === known?.kind ? SAME_MS : HOLD_MS;
    const left = urgent ? 0 : this.#saidAt + hold - performance.now();
    if (left > 0) {
      this.#timer = setTimeout(() => this.#advance(), left);
      return;
    }
    this.#said = next;
    this.#saidAt = performance.now();
    this.#write();
  }

  #write() {
    if (this.#said) put(this.sentence, terms() ? this.#said.terms : this.#said.plain);
  }

  async #start() {
    await post("/api/demo");
    announce("The demo is starting");
    await this.session.refresh();
  }

  async #stop() {
    const runs = this.#runs.filter(({ data }) => data.info.live && data.info.controlled);
    await Promise.all(runs.map(({ data }) => post(runPath(data.info.name, "stop"))));
    announce("The runs were asked to stop");
  }
}

/** One run: what it is called, its path, and the figures that an audience can compare. */
class Lane {
  constructor(run, runs) {
    this.run = run;
    this.runs = runs;
    this.title = el("h2");
    this.nodes = ["sender", "mobile", "base", "receiver"].map((name) => ({ name, node: el("span", { class: "stop" }) }));
    this.air = svg(
      "svg",
      { class: "air", viewBox: "0 0 120 16", preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("path", { d: WAVE }),
    );
    this.number = el("span", { class: "number" });
    this.unit = el("span", { class: "unit" });
    this.rate = el("span", { class: "lane-label" });
    this.facts = ["damaged", "left"].map((name) => ({ name, value: el("b"), label: el("span") }));
    this.technical = el("p", { class: "lane-terms" });
    const [sender, mobile, base, receiver] = this.nodes.map(({ node }) => node);
    const wire = () => el("span", { class: "wire" });
    this.node = el(
      "section",
      { class: "lane panel", "data-slot": run.slot, "data-role": role(run, runs) },
      this.title,
      el("div", { class: "way" }, sender, wire(), mobile, this.air, base, wire(), receiver),
      el("p", { class: "lane-rate" }, this.number, this.unit, this.rate),
      el(
        "p",
        { class: "lane-facts" },
        this.facts.map(({ value, label }) => el("span", {}, value, " ", label)),
      ),
      this.technical,
    );
    this.rename();
  }

  rename() {
    const { name, hint } = runName(this.run, this.runs);
    put(this.title, name);
    mark(this.title, "title", hint);
    for (const { name, node } of this.nodes) {
      put(node, word(name));
      mark(node, "title", otherWord(name));
    }
    for (const { name, label } of this.facts) put(label, word(name));
  }

  update(figures, { factor, unit }) {
    const { data } = this.run;
    put(this.rate, word(data.info.live ? "rate" : "mean"));
    put(this.number, digits(figures.goodput / factor));
    put(this.unit, unit);
    const shares = [figures.before, figures.after];
    this.facts.forEach(({ value }, index) => put(value, percent(shares[index])));
    const down = Object.values(data.links).some((state) => state.established === false);
    mark(this.air, "data-state", down ? "down" : figures.before > 100 * POOR ? "poor" : "good");
    put(this.technical, terms() ? details(data) : "");
  }
}

/** The figures of the last seconds, calm enough to be read; shares in percent. */
function newest(data) {
  const share = (which) => data.series("per", `${data.mainLink} ${which}`)?.mean(data.end - LOSS_S, data.end);
  return { goodput: carriedAt(data, data.end), before: share("before"), after: share("after") };
}

function percent(share) {
  return share === undefined || share === null || Number.isNaN(share) ? "–" : `${digits(share)} %`;
}

/** What an engineer asks next: window, round-trip time, SNR. */
function details(data) {
  const first = (chart) => data.series(chart, data.labels(chart).find((label) => !/ (ssthresh|RTO)$/.test(label)));
  const at = (chart) => first(chart)?.at(data.end) ?? NaN;
  const snr = data.links[data.mainLink]?.snr_db;
  return [
    `cwnd ${text(at("cwnd"), "bytes")}`,
    `SRTT ${text(at("srtt"), "ms")}`,
    snr === undefined || snr === null ? "" : `SNR ${text(snr, "dB")}`,
  ]
    .filter(Boolean)
    .join(" · ");
}

/** The result card: so far, and in the end for good. */
class Score {
  constructor(stop, start, guide) {
    this.title = el("h2");
    this.ratio = el("span", { class: "number" });
    this.words = el("span", { class: "score-words" });
    this.body = el("tbody");
    this.head = el("tr");
    this.table = el("table", {}, el("thead", {}, this.head), this.body);
    this.stopButton = this.#button("Finish", stop, "Asking …");
    this.startButton = this.#button("Start the demo", start, "Starting …");
    this.startButton.classList.add("primary");
    this.tourButton = this.#button("Guided tour", guide, "Starting …");
    this.tourButton.title = "Five steps, from a clear channel to a recorded one (g)";
    this.problem = el("p", { class: "problem", role: "alert" });
    this.intro = el("p", {}, INTRO);
    this.why = el("p", { class: "hint" });
    this.node = el(
      "section",
      { class: "score panel", "aria-label": "Result" },
      this.title,
      this.intro,
      el("p", { class: "score-ratio" }, this.ratio, this.words),
      this.table,
      this.why,
      el("div", { class: "row" }, this.stopButton, this.startButton, this.tourButton),
      this.problem,
    );
  }

  #button(words, act, busy) {
    const button = el("button", { type: "button" }, words);
    button.addEventListener("click", async () => {
      button.disabled = true;
      put(button, busy);
      put(this.problem, "");
      try {
        await act();
      } catch (error) {
        put(this.problem, error.message);
      }
      put(button, words);
      button.disabled = false;
    });
    return button;
  }

  update(runs, session, { factor, unit }) {
    const live = runs.some(({ data }) => data.info.live);
    const starter = session.state?.starter ?? null;
    this.stopButton.hidden = !session.authorised || !runs.some(({ data }) => data.info.live && data.info.controlled);
    const guided = session.state?.tour ?? null;
    this.startButton.hidden = !session.authorised || !starter || Boolean(starter.why_not) || live || Boolean(guided?.on);
    this.tourButton.hidden = this.startButton.hidden || !guided;
    const late = runs.some(({ data }) => data.info.ended?.summary?.on_time === false);
    const why = starter?.why_not ? `Nothing can be started just now: ${starter.why_not}.` : "";
    put(this.why, late ? LATE : live ? "" : why);
    this.why.hidden = !this.why.textContent;
    put(this.startButton, this.startButton.disabled ? "Starting …" : runs.length ? "Again" : "Start the demo");
    put(this.title, !runs.length ? "What you will see" : live ? "So far" : "Result");
    this.intro.hidden = runs.length > 0;
    this.table.hidden = !runs.length;
    const end = Math.min(...runs.map(({ data }) => data.end));
    const goodputs = runs.map(({ data }) => (live ? carried(data, end) : result(data).goodput));
    this.#compare(runs, goodputs);
    this.#fill(runs, goodputs.map((each) => `${digits(each / factor)} ${unit}`));
  }

  /** The ratio of the one with repair to the one without; of other pairs that of the second to the first. */
  #compare(runs, goodputs) {
    const known = runs.length === 2 && goodputs.every((each) => each > 0);
    const roles = runs.map((run) => role(run, runs));
    const [bare, repaired] = BETTER.includes(roles[0]) ? [1, 0] : [0, 1];
    put(this.ratio, known ? times(goodputs[repaired] / goodputs[bare]) : "");
    const words = COMPARED[roles[repaired]] ?? "second over first";
    put(this.words, !known ? "" : terms() ? "ratio of the mean goodputs" : words);
  }

  #fill(runs, goodputs) {
    const losses = runs.map(({ data }) => data.links[data.mainLink]?.losses ?? {});
    const number = (value) => (value === null || value === undefined ? "–" : count(value));
    const rows = [
      ["mean", goodputs],
      ["damagedCount", losses.map((each) => number(each.corruption))],
      ["leftCount", losses.map((each) => number(each["given up"]))],
      ["repaired", losses.map(repairedShare)],
    ];
    const signature = JSON.stringify([rows, terms(), runs.map((run) => shortName(run, runs))]);
    if (this.table.dataset.shown === signature) return;
    this.table.dataset.shown = signature;
    this.head.replaceChildren(
      el("td"),
      ...runs.map((run) => el("th", { scope: "col", "data-slot": run.slot }, shortName(run, runs))),
    );
    this.body.replaceChildren(
      ...rows.map(([name, values]) =>
        el(
          "tr",
          { "data-row": name },
          el("th", { scope: "row", title: otherWord(name) }, word(name)),
          values.map((value) => el("td", { class: "number" }, value)),
        ),
      ),
    );
  }
}

/** The share of the losses on the air that did not become losses of packets. */
function repairedShare({ corruption, "given up": left }) {
  if (!corruption || left === null || left === undefined) return "–";
  return `${digits(100 * Math.max(0, 1 - left / corruption))} %`;
}
