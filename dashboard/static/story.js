// The story of a loss in a past run: a click on the lanes of its losses, or Enter at the cursor, asks for the one that is
// nearest in time, in the direction that the charts show.

import { get, runPath } from "./api.js";
import { el } from "./dom.js";

/** pixels that a pointer may move in a click; more is a zoom */
const STILL = 4;

export class LossStory {
  #runs = [];
  #asked = 0;

  /** `losses` is the figure of the losses, and `view` its time axis. */
  constructor(losses, view) {
    this.losses = losses;
    this.view = view;
    this.node = el("section", { class: "story", "aria-live": "polite", "aria-label": "Story of a loss", hidden: true });
    losses.figure.append(this.node);
    let down = null;
    losses.plot.addEventListener("pointerdown", (event) => {
      down = event.button === 0 ? event.clientX : null;
    });
    losses.plot.addEventListener("click", (event) => {
      const box = losses.plot.getBoundingClientRect();
      if (down === null || Math.abs(event.clientX - down) > STILL || !this.#runs.length) return;
      const row = this.#row((event.clientY - box.top) / box.height);
      this.#ask(row, (event.clientX - box.left) / box.width);
    });
    losses.plot.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || view.cursor === null || !this.#runs.length) return;
      event.preventDefault();
      this.#ask(0, view.cursor);
    });
  }

  /** Take runs: [{slot, detail}]; a story of others goes. */
  show(runs) {
    this.#runs = runs;
    this.#asked++;
    this.node.hidden = true;
    this.node.replaceChildren();
  }

  /** Which run a height of the plot belongs to, from 0 to 1: each lane has a part for each. */
  #row(height) {
    const lane = height * this.losses.names.children.length;
    return Math.min(this.#runs.length - 1, Math.floor((lane % 1) * this.#runs.length));
  }

  async #ask(row, across) {
    const asked = ++this.#asked;
    const [low, high] = this.view.range();
    const { name } = this.#runs[row].detail.info;
    const time = low + across * (high - low);
    this.#say(el("p", { class: "hint" }, `Looking for the loss nearest to ${time.toFixed(2)} s …`));
    try {
      const direction = this.view.direction === "both" ? "" : this.view.direction;
      const { story } = await get(runPath(name, "story"), { time: time.toFixed(4), direction });
      if (asked === this.#asked) this.#say(...told(story, () => this.show(this.#runs)));
    } catch (error) {
      if (asked === this.#asked) this.#say(el("p", { class: "problem" }, error.message));
    }
  }

  #say(...nodes) {
    this.node.hidden = false;
    this.node.replaceChildren(...nodes);
  }
}

function told(story, close) {
  const head = ["time (s)", "ms", "place", "what"].map((words) => el("th", { scope: "col" }, words));
  const began = story.events[0].time_ns;
  const rows = story.events.map((event) =>
    el(
      "tr",
      { class: lost(event) ? "lost" : null },
      el("td", { class: "number" }, (event.time_ns / 1e9).toFixed(6)),
      el("td", { class: "number" }, `+${((event.time_ns - began) / 1e6).toFixed(1)}`),
      el("td", {}, event.place),
      el("td", {}, event.words),
    ),
  );
  return [
    el(
      "div",
      { class: "story-head" },
      el("p", {}, el("strong", {}, `Loss ${story.loss}. `), story.sentence),
      el("button", { type: "button", onclick: close }, "Close the story"),
    ),
    el(
      "div",
      { class: "scroll", tabindex: "0", role: "group", "aria-label": "Events of the story" },
      el("table", { class: "sheet" }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows)),
    ),
  ];
}

function lost(event) {
  return event.event === "dropped" || ["damaged", "erased", "unheard"].includes(event.fate);
}
