// "Break it": the buttons that disturb the channel of the runs shown, for some seconds. The server mends it by itself.
//
// Rule kept: what is broken follows from the runs' records, so that all pages show the same.

import { announce } from "./announce.js";
import { get, post } from "./api.js";
import { el, mark, put } from "./dom.js";
import { broken } from "./race.js";
import { terms } from "./words.js";

/** a break that was asked for is in the records well before */
const PENDING_MS = 3000;

export class Breaker {
  /** what can be broken, as /api/breaks has it */
  breaks = [];
  /** whether a break is on or was asked for: there is one at a time */
  busy = false;
  #runs = [];
  #buttons = [];
  #pendingUntil = 0;

  constructor(session, onbreaks) {
    this.session = session;
    this.problem = el("p", { class: "problem", role: "alert" });
    this.row = el("div", { class: "break-buttons" });
    this.node = el(
      "section",
      { class: "break panel", "aria-labelledby": "break-title" },
      el("h2", { id: "break-title" }, "Break it"),
      this.row,
      this.problem,
    );
    this.#load(onbreaks);
  }

  show(runs) {
    this.#runs = runs;
    this.update();
  }

  update() {
    const steered = this.#steered();
    this.node.hidden = !this.session.authorised || !steered.length;
    const on = broken(steered, this.breaks).find(({ to }) => to === null)?.label;
    if (on) this.#pendingUntil = 0;
    this.busy = Boolean(on) || performance.now() < this.#pendingUntil;
    this.#buttons.forEach(({ node, hint, each }) => {
      mark(node, "data-on", each.label === on ? "" : null);
      mark(node, "aria-disabled", this.busy ? "true" : null);
      put(hint, terms() ? `${each.terms}, ${each.seconds} s` : each.plain);
    });
  }

  /** Break the runs shown; by name, as keys do. */
  async start(name) {
    const found = this.#buttons.find(({ each }) => each.name === name);
    if (!found || this.node.hidden || this.busy) return;
    const { each } = found;
    this.#pendingUntil = performance.now() + PENDING_MS;
    this.update();
    put(this.problem, "");
    try {
      await post("/api/breaks", { name, runs: this.#steered().map(({ data }) => data.info.name) });
      announce(`${each.label}: ${each.plain}`);
    } catch (error) {
      put(this.problem, error.message);
      this.#pendingUntil = 0;
      this.update();
    }
  }

  #steered() {
    return this.#runs.filter(({ data }) => data.info.live && data.info.controlled);
  }

  async #load(onbreaks) {
    try {
      ({ breaks: this.breaks } = await get("/api/breaks"));
    } catch {
      // without the list there are no buttons
      return;
    }
    this.#buttons = this.breaks.map((each) => {
      const hint = el("span", { class: "hint" });
      const node = el(
        "button",
        { type: "button", "data-break": each.name, onclick: () => this.start(each.name) },
        el("b", {}, each.label),
        el("kbd", { "aria-hidden": "true" }, each.name[0]),
        hint,
      );
      node.style.setProperty("--seconds", `${each.seconds}s`);
      return { node, hint, each };
    });
    this.row.replaceChildren(...this.#buttons.map(({ node }) => node));
    this.update();
    onbreaks();
  }
}
