// Past runs: a table to filter, sort and search, and to pick two from. Its state stands in the address: #/runs?tier=…

import { get } from "./api.js";
import { announce } from "./announce.js";
import { el, mark, put } from "./dom.js";
import { moment, scheme, schemeSummary, text } from "./format.js";

const FILTERS = ["scenario", "tier", "scheme", "tcp"];
const COLUMNS = [
  ["started", "Started"],
  ["scenario", "Scenario"],
  ["tier", "Tier"],
  ["scheme", "Link"],
  ["tcp", "TCP"],
  ["seed", "Seed"],
  ["goodput_bps", "Goodput"],
  ["throughput_bps", "Throughput"],
  ["duration_s", "Time"],
  [null, "Remarks"],
];
const NUMBERS = new Set(["seed", "goodput_bps", "throughput_bps", "duration_s"]);
const SEARCH_MS = 200;

export class History {
  #picked = new Map();
  #query = {};
  #asked = 0;

  constructor(root) {
    this.root = root;
    this.search = root.querySelector("#history-text");
    this.selects = Object.fromEntries(FILTERS.map((name) => [name, root.querySelector(`#history-${name}`)]));
    this.table = root.querySelector("table");
    this.status = root.querySelector("[data-status]");
    this.compare = root.querySelector("[data-compare]");
    this.pages = root.querySelector("[data-pages]");
    let timer = 0;
    this.search.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.#go({ text: this.search.value.trim(), page: "" }), SEARCH_MS);
    });
    for (const [name, select] of Object.entries(this.selects)) {
      select.addEventListener("change", () => this.#go({ [name]: select.value, page: "" }));
    }
    this.compare.addEventListener("click", () => {
      location.hash = `#/compare/${[...this.#picked.keys()].map(encodeURIComponent).join("/")}`;
    });
    root.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  }

  /** Show what the address asks for. */
  async show(parameters) {
    this.#query = Object.fromEntries(parameters);
    if (this.search !== document.activeElement) this.search.value = this.#query.text ?? "";
    const asked = ++this.#asked;
    let answer;
    try {
      answer = await get("/api/runs", this.#query);
    } catch (error) {
      put(this.status, error.message);
      return;
    }
    // an older question's answer may come later
    if (asked !== this.#asked) return;
    this.#drawFilters(answer.facets);
    this.#drawTable(answer.runs);
    this.#drawPages(answer);
    this.#drawPicked();
  }

  #go(changes) {
    const query = new URLSearchParams(
      Object.entries({ ...this.#query, ...changes }).filter(([, value]) => value !== "" && value != null),
    );
    location.replace(query.size ? `#/runs?${query}` : "#/runs");
  }

  #drawFilters(facets) {
    for (const [name, select] of Object.entries(this.selects)) {
      const chosen = this.#query[name] ?? "";
      const values = [...new Set([...(facets[name] ?? []), ...(chosen ? [chosen] : [])])];
      select.replaceChildren(
        el("option", { value: "" }, "all"),
        ...values.map((value) => el("option", { value }, value)),
      );
      select.value = chosen;
    }
  }

  #drawTable(runs) {
    const sort = this.#query.sort ?? "-started";
    const heads = COLUMNS.map(([key, words]) => {
      if (!key) return el("th", { scope: "col" }, words);
      const order = sort === key ? "ascending" : sort === `-${key}` ? "descending" : null;
      const next = order === "descending" ? key : `-${key}`;
      const arrow = { ascending: " ↑", descending: " ↓" }[order] ?? "";
      return el(
        "th",
        { scope: "col", "aria-sort": order, class: NUMBERS.has(key) ? "number" : null },
        el(
          "button",
          { type: "button", class: "sort", onclick: () => this.#go({ sort: next, page: "" }) },
          words,
          el("span", { "aria-hidden": "true" }, arrow),
        ),
      );
    });
    this.table.replaceChildren(
      el("caption", { class: "visually-hidden" }, "Past runs"),
      el(
        "thead",
        {},
        el("tr", {}, el("th", { scope: "col" }, el("span", { class: "visually-hidden" }, "Select")), heads),
      ),
      el(
        "tbody",
        {},
        runs.map((run) => this.#row(run)),
      ),
    );
  }

  #row(run) {
    const box = el("input", {
      type: "checkbox",
      "aria-label": `select ${run.name}`,
      onchange: () => this.#pick(run, box),
    });
    box.checked = this.#picked.has(run.name);
    const number = (words) => el("td", { class: "number" }, words);
    return el(
      "tr",
      { class: run.problem ? "broken" : null },
      el("td", {}, box),
      el(
        "td",
        {},
        el(
          "a",
          { href: `#/run/${encodeURIComponent(run.name)}`, title: run.name },
          run.started ? moment(run.started) : run.name,
        ),
      ),
      el("td", {}, run.scenario ?? ""),
      el("td", {}, run.tier ?? ""),
      el("td", { title: schemeSummary(run.scheme) }, run.scheme ? scheme(run.scheme) : ""),
      el("td", {}, run.tcp ?? ""),
      number(run.seed ?? ""),
      number(text(run.goodput_bps, "bit/s")),
      number(text(run.throughput_bps, "bit/s")),
      number(text(run.duration_s, "s")),
      el("td", { class: "remarks" }, remarks(run)),
    );
  }

  #pick(run, box) {
    if (box.checked) this.#picked.set(run.name, run);
    else this.#picked.delete(run.name);
    // the two picked last
    for (const name of [...this.#picked.keys()].slice(0, -2)) this.#picked.delete(name);
    for (const other of this.table.querySelectorAll("tbody input")) {
      other.checked = [...this.#picked.keys()].some((name) => other.getAttribute("aria-label") === `select ${name}`);
    }
    this.#drawPicked();
  }

  #drawPicked() {
    this.compare.disabled = this.#picked.size !== 2;
    put(
      this.compare,
      this.#picked.size === 2 ? "Compare the two" : `Compare: pick ${["two", "one more"][this.#picked.size]}`,
    );
  }

  #drawPages({
    runs,
    total,
    page = Number(this.#query.page ?? 1),
    per_page: perPage = 50,
    pages = Math.ceil(total / perPage),
  }) {
    const words =
      total === 0
        ? "No run fits."
        : `${total} ${total === 1 ? "run" : "runs"}${runs.length < total ? `, page ${page} of ${pages}` : ""}`;
    if (this.status.textContent !== words) announce(words);
    put(this.status, words);
    const button = (name, to, enabled) => {
      const node = el("button", { type: "button", onclick: () => this.#go({ page: to }) }, name);
      node.disabled = !enabled;
      return node;
    };
    this.pages.replaceChildren(button("Newer", page - 1, page > 1), button("Older", page + 1, page < pages));
    mark(this.pages, "hidden", pages > 1 ? null : "");
  }
}

/** What is unusual about a run, in few words. */
export function remarks(run) {
  if (run.live) return "goes on";
  const words = [];
  // without a result nobody knows whether it was cut short
  if (run.problem) words.push(run.problem);
  else if (run.finished === false) words.push("cut short");
  if (run.intact === false) words.push("corrupt: what arrived is not what was sent");
  if (run.on_time === false) words.push("late: not the channel's figures");
  if (run.controlled) words.push("changed by hand");
  return words.join(", ");
}
