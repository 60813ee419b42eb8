// Campaigns: which there are, and how far those are that go on. Asked every other second while the view is shown.

import { get } from "./api.js";
import { el, put } from "./dom.js";
import { clock, count, text } from "./format.js";

const EVERY_MS = 2000;
const COLUMNS = ["Campaign", "State", "Runs", "Failed", "Speed", "Going on for", "ETA", "Real-time run"];
const NUMBERS = new Set(["Failed", "Speed", "Going on for", "ETA"]);

export class Campaigns {
  #timer = 0;

  constructor(root) {
    this.root = root;
    this.table = root.querySelector("table");
    this.status = root.querySelector("[data-status]");
  }

  /** Show all campaigns, and keep them fresh as long as the view is on the page. */
  async show() {
    clearTimeout(this.#timer);
    try {
      const { campaigns } = await get("/api/campaigns");
      this.#draw(campaigns);
    } catch (error) {
      put(this.status, error.message);
    }
    clearTimeout(this.#timer);
    if (!this.root.hidden) this.#timer = setTimeout(() => this.show(), EVERY_MS);
  }

  #draw(campaigns) {
    const going = campaigns.filter((each) => each.state === "going on").length;
    const all = `${campaigns.length} ${campaigns.length === 1 ? "campaign" : "campaigns"}`;
    put(this.status, campaigns.length ? `${all}, ${going} going on` : "There is none yet.");
    this.table.replaceChildren(
      el("caption", { class: "visually-hidden" }, "Campaigns"),
      el("thead", {}, el("tr", {}, ...COLUMNS.map(heading))),
      el("tbody", {}, ...campaigns.map((each) => row(each))),
    );
  }
}

function heading(words) {
  return el("th", { scope: "col", class: NUMBERS.has(words) ? "number" : null }, words);
}

function row(campaign) {
  const { ended, planned } = campaign;
  const bar = planned ? el("progress", { max: planned, value: ended, "aria-label": `runs of ${campaign.name}` }) : null;
  return el(
    "tr",
    { class: campaign.state === "interrupted" ? "broken" : null },
    el("th", { scope: "row" }, campaign.name),
    el("td", {}, campaign.state),
    el("td", { class: "runs-done" }, bar, planned ? `${count(ended)} of ${count(planned)}` : count(ended)),
    el("td", { class: campaign.failed ? "number problem" : "number" }, count(campaign.failed)),
    el("td", { class: "number" }, campaign.runs_per_s ? `${text(campaign.runs_per_s, "")}/s` : ""),
    el("td", { class: "number" }, campaign.elapsed_s === null ? "" : clock(campaign.elapsed_s)),
    el("td", { class: "number" }, campaign.left_s === null ? "" : clock(campaign.left_s)),
    el("td", {}, campaign.run ? realTime(campaign) : ""),
  );
}

function realTime({ run, run_elapsed_s: elapsed, run_goodput_bps: goodput }) {
  return elapsed === null ? run : `${run}: ${clock(elapsed)}, ${text(goodput, "bit/s")}`;
}
