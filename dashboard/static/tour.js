// The guided tour of the demo: its steps, where it is, and what moves it on.
//
// Rule kept: the steps and all sentences are the server's (dashboard/tour.py), so that all pages show the same.

import { announce } from "./announce.js";
import { post } from "./api.js";
import { el, mark, put } from "./dom.js";

/** topics of sentences that say less than the step's own */
const SILENT = ["none", "others", "waiting", "begin"];

export class Tour {
  #shown = "";
  #known = "";

  constructor(session) {
    this.session = session;
    this.list = el("ol", { class: "tour-steps" });
    this.attended = this.#button("Go on by itself", () => this.act(this.unattended ? "attended" : "unattended"), "u");
    this.previous = this.#button("Previous", () => this.act("previous"), "←");
    this.next = this.#button("Next", () => this.act("next"), "→");
    this.back = this.#button("Back to the demo", () => this.act("end"), "");
    this.problem = el("p", { class: "problem", role: "alert" });
    this.buttons = el("div", { class: "tour-buttons" }, this.attended, this.previous, this.next, this.back);
    this.node = el(
      "nav",
      { class: "tour panel", "aria-label": "Guided tour", hidden: "" },
      this.list,
      this.buttons,
      this.problem,
    );
  }

  #button(words, act, key) {
    const button = el("button", { type: "button", title: key ? `${words} (${key})` : words }, words);
    button.addEventListener("click", act);
    return button;
  }

  get state() {
    return this.session.state?.tour ?? null;
  }

  get on() {
    return this.state?.on ?? false;
  }

  get unattended() {
    return this.state?.unattended ?? false;
  }

  /** Ask the server to begin, to move on, or to end. */
  async act(name) {
    put(this.problem, "");
    try {
      await post("/api/tour", { act: name });
    } catch (error) {
      put(this.problem, error.message);
      announce(error.message);
    }
    await this.session.refresh();
  }

  /** The sentence of the step, where it goes before the one that the records make; else null. */
  sentence(comment) {
    if (!this.on) return null;
    const { step, phase, sentence } = this.state;
    if (phase === "running" && comment && !SILENT.includes(comment.kind)) return null;
    return { kind: `tour ${step} ${phase === "running" ? "story" : phase}`, plain: sentence, terms: sentence };
  }

  update() {
    this.node.hidden = !this.on && !this.problem.textContent;
    this.list.hidden = !this.on;
    this.buttons.hidden = !this.on || !this.session.authorised;
    if (!this.on) return;
    const { steps, step, phase } = this.state;
    mark(this.attended, "aria-pressed", String(this.unattended));
    const signature = JSON.stringify([steps, step, phase]);
    if (signature === this.#shown) return;
    this.#shown = signature;
    this.list.replaceChildren(
      ...steps.map(({ title, tier }, index) =>
        el(
          "li",
          { "aria-current": index === step ? "step" : null, "data-phase": index === step ? phase : null },
          el("span", { class: "tour-number", "aria-hidden": "true" }, String(index + 1)),
          el("span", { class: "tour-title" }, title),
          el("span", { class: "tour-tier", title: "The tier: what carries this step's runs" }, tier),
        ),
      ),
    );
    const words = `Step ${step + 1} of ${steps.length}: ${steps[step].title}`;
    if (words !== this.#known) announce(words);
    this.#known = words;
  }
}
