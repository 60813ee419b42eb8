// One past run (#/run/A) and two side by side (#/compare/A/B): figures, charts, differences and downloads.

import { get, runPath } from "./api.js";
import { Charts } from "./charts.js";
import { RunData } from "./data.js";
import { Delays } from "./delays.js";
import { el, put } from "./dom.js";
import { downloads } from "./downloads.js";
import { moment, scheme, schemeSummary, text, times } from "./format.js";
import { LossStory } from "./story.js";
import { TimeView } from "./timeview.js";

/** figures of a comparison that stand above the charts */
const CARDS = 4;
const FIGURES = [
  ["goodput_bps", "Goodput", "bit/s"],
  ["throughput_bps", "Throughput", "bit/s"],
  ["capacity_bps", "Capacity", "bit/s"],
  ["duration_s", "Time", "s"],
  ["retransmissions", "TCP retransmissions", ""],
  ["timeouts", "TCP timeouts", ""],
  ["events", "Events", ""],
  ["late_events", "Late events", ""],
  ["max_late_ms", "Worst lateness", "ms"],
  ["changes", "Changes by hand", ""],
];

export class Past {
  #asked = 0;

  constructor(root, specs) {
    this.root = root;
    this.time = new TimeView();
    this.title = root.querySelector("h1");
    this.problem = root.querySelector("[data-problem]");
    this.parts = root.querySelector("[data-run]");
    this.facts = root.querySelector("[data-facts]");
    this.takeaway = root.querySelector("[data-takeaway]");
    this.texts = root.querySelector("[data-texts]");
    this.tables = root.querySelector("[data-tables]");
    this.charts = new Charts(root.querySelector("[data-part=charts]"), specs, this.time);
    this.delays = new Delays(root.querySelector("[data-part=delays]"));
    this.story = new LossStory(this.charts.losses, this.time);
    root.querySelector("[data-directions]").replaceWith(this.charts.directions.node);
  }

  /** Show one run or two. */
  async show(names) {
    const asked = ++this.#asked;
    put(this.problem, "");
    put(this.title, names.length === 2 ? "Two runs side by side" : "Run");
    try {
      if (!names.length || names.includes("")) throw new Error("the address names no run");
      const paths = names.flatMap((name) => [get(runPath(name)), get(runPath(name, "series"))]);
      const [details, comparison] = await Promise.all([
        Promise.all(paths),
        names.length === 2 ? get("/api/compare", { a: names[0], b: names[1] }) : null,
      ]);
      if (asked !== this.#asked) return;
      const runs = names.map((_, index) => ({
        slot: "AB"[index],
        detail: details[2 * index],
        data: loaded(details[2 * index], details[2 * index + 1]),
        delays: details[2 * index + 1].delays,
      }));
      this.#draw(runs, comparison);
    } catch (error) {
      if (asked !== this.#asked) return;
      // nothing of another run stays beside the message
      this.parts.hidden = true;
      this.charts.show([]);
      put(this.problem, error.message);
    }
  }

  #draw(runs, comparison) {
    this.parts.hidden = false;
    this.facts.replaceChildren(...(comparison ? contrasted(runs, comparison) : summarised(runs[0])));
    this.tables.replaceChildren(...(comparison ? compared(comparison) : []));
    this.takeaway.replaceChildren(
      ...downloads(runs.map(({ slot, detail }) => ({ slot, name: detail.info.name, files: detail.files }))),
    );
    this.texts.replaceChildren(...runs.flatMap(({ slot, detail }) => documents(detail, runs.length > 1 ? slot : "")));
    this.time.set({ zoom: null, end: Math.max(...runs.map(({ data }) => data.end)) });
    this.charts.show(runs);
    this.delays.show(runs);
    this.story.show(runs);
    this.charts.direct();
  }
}

function loaded(detail, series) {
  const data = new RunData({ ...detail.info });
  data.take(series);
  return data;
}

function heading({ slot, detail }, several) {
  const { info } = detail;
  const does = schemeSummary(info.scheme);
  const words = [
    info.scenario,
    info.tier,
    `${scheme(info.scheme ?? "")}${does ? ` (${does})` : ""}`,
    info.tcp,
    info.seed == null ? "" : `seed ${info.seed}`,
  ].filter(Boolean);
  return el(
    "p",
    { class: "run-line" },
    several ? el("span", { class: "slot", "data-slot": slot }, slot) : null,
    el("a", { href: `#/run/${encodeURIComponent(info.name)}` }, info.name),
    el(
      "span",
      { class: "hint" },
      `${words.join(" · ")}${detail.manifest?.started ? ` · ${moment(detail.manifest.started)}` : ""}`,
    ),
  );
}

function summarised(run) {
  const { summary } = run.detail;
  const rows = summary
    ? FIGURES.filter(([key]) => summary[key] != null).map(([key, words, unit]) => [words, text(summary[key], unit)])
    : [];
  return [
    heading(run, false),
    summary ? null : el("p", { class: "problem" }, "This run has no result: it failed, was stopped, or still goes on."),
    el(
      "dl",
      { class: "figures-list" },
      rows.flatMap(([words, value]) => el("div", {}, el("dt", {}, words), el("dd", {}, value))),
    ),
  ].filter(Boolean);
}

function contrasted(runs, { rows }) {
  const cards = rows
    .slice(0, CARDS)
    .map(({ figure, unit, a, b, ratio }) => [
      figure,
      `${shown(a, unit)} · ${shown(b, unit)}`,
      ratio == null ? "" : times(ratio),
    ]);
  return [
    ...runs.map((run) => heading(run, true)),
    el(
      "dl",
      { class: "figures-list" },
      cards.map(([words, values, ratio]) =>
        el("div", {}, el("dt", {}, words), el("dd", {}, values, " ", el("span", { class: "hint" }, ratio))),
      ),
    ),
  ];
}

function compared({ rows, differs }) {
  const head = (words) => el("th", { scope: "col", class: words ? "number" : null }, words);
  const number = (words) => el("td", { class: "number" }, words);
  const figure = ({ figure: name, unit, a, b, ratio }) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, name),
      number(shown(a, unit)),
      number(shown(b, unit)),
      el("td", { class: "number ratio" }, ratio == null ? "–" : times(ratio)),
    );
  const difference = ({ key, a, b }) =>
    el("tr", {}, el("th", { scope: "row" }, el("code", {}, key)), number(plain(a)), number(plain(b)));
  const none = el("tr", {}, el("td", { colspan: 3 }, "nowhere"));
  return [
    sheet("Figures", ["", "A", "B", "B / A"].map(head), rows.map(figure)),
    sheet("Where the scenarios differ", ["", "A", "B"].map(head), differs.length ? differs.map(difference) : none),
  ];
}

function sheet(caption, heads, rows) {
  const table = el(
    "table",
    { class: "sheet" },
    el("caption", {}, caption),
    el("thead", {}, el("tr", {}, heads)),
    el("tbody", {}, rows),
  );
  // wider than a phone it scrolls by itself, by keys too
  return el("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": caption }, table);
}

function documents(detail, slot) {
  const fold = (words, body) =>
    el("details", {}, el("summary", {}, slot ? `${words} of ${slot}` : words), el("pre", { tabindex: "0" }, body));
  return [
    fold("Scenario", detail.scenario ?? ""),
    fold("Manifest", JSON.stringify(detail.manifest, null, 2)),
    fold("Result", JSON.stringify(detail.summary, null, 2)),
  ];
}

function shown(value, unit) {
  return typeof value === "number" ? text(value, unit) : plain(value);
}

function plain(value) {
  return value == null ? "–" : typeof value === "string" ? value : JSON.stringify(value);
}
