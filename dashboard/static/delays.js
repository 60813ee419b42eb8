// Delays under load of a past run or two, as one chart: shares of the packets within a delay. The legend has the
// percentiles of the result.
//
// Rules: the delay is logarithmic, as queues make it ten times as long; shares are drawn so that each factor of ten of
// what is above them has the same height, since it is the tail that is felt. Where only percentiles are known, the line
// joins these.

import { el, put, svg } from "./dom.js";
import { count, digits } from "./format.js";

const HEIGHT = 250;
const AREA = { left: 48, right: 14, top: 10, bottom: 38 };
const SHARES = [0, 0.5, 0.9, 0.95, 0.99];
const HIGHEST = 0.995;
const PLACES = [
  ["p50_ms", 0.5],
  ["p95_ms", 0.95],
  ["p99_ms", 0.99],
];
const DASHES = { one_way: null, round_trip: "7 4", smoothed: "2 3", probe_round_trip: "9 3 2 3", path1: "5 3 1 3", path2: "1 4" };

export class Delays {
  #lines = [];

  constructor(host) {
    this.host = host;
    this.plot = el("div", { class: "delays-plot", role: "img" });
    this.body = el("tbody");
    this.several = el("th", { scope: "col" }, "Run");
    const head = ["Delay", "Number", "p50", "p95", "p99"].map((words) => el("th", { scope: "col" }, words));
    host.replaceChildren(
      el(
        "figure",
        { class: "delays panel" },
        el(
          "figcaption",
          {},
          el("h2", {}, "Delays under load"),
          el("span", { class: "hint" }, "share of the packets within a delay (ms, logarithmic)"),
        ),
        this.plot,
        el(
          "div",
          { class: "scroll", role: "region", tabindex: "0", "aria-label": "Percentiles of the delays" },
          el("table", { class: "sheet" }, el("thead", {}, el("tr", {}, el("td"), this.several, head)), this.body),
        ),
      ),
    );
    new ResizeObserver(() => this.#draw()).observe(this.plot);
    this.show([]);
  }

  /** Show runs: [{slot, delays}], as /api/runs/RUN/series has them. */
  show(runs) {
    this.#lines = runs.flatMap(({ slot, delays }) => delays.map((row) => ({ slot, ...row })));
    this.host.hidden = !this.#lines.length;
    this.several.hidden = runs.length < 2;
    const words = ({ slot, label }) => (runs.length > 1 ? `${label} of ${slot}` : label);
    const sentences = this.#lines.map((line) => `${words(line)}: median ${digits(line.p50_ms)} ms`);
    this.plot.setAttribute("aria-label", `Delays under load. ${sentences.join("; ")}`);
    this.body.replaceChildren(
      ...this.#lines.map((line) =>
        el(
          "tr",
          {},
          el("td", {}, svg("svg", { class: "delays-key", viewBox: "0 0 34 8", "aria-hidden": "true" }, stroke(line, "M0 4H34"))),
          runs.length > 1 ? el("td", {}, el("span", { class: "slot", "data-slot": line.slot }, line.slot)) : null,
          el("th", { scope: "row" }, line.label),
          el("td", { class: "number" }, count(line.n)),
          PLACES.map(([place]) => el("td", { class: "number" }, `${digits(line[place])} ms`)),
        ),
      ),
    );
    this.#draw();
  }

  #draw() {
    const width = this.plot.clientWidth;
    if (width < 100 || !this.#lines.length) return;
    const known = this.#lines.flatMap(({ curve, ...line }) => [
      ...PLACES.map(([place]) => line[place]),
      ...curve.filter(([delay]) => delay > 0).map(([delay]) => delay),
    ]);
    const low = Math.min(...known) / 1.15;
    const high = Math.max(...known) * 1.15;
    const inner = { width: width - AREA.left - AREA.right, height: HEIGHT - AREA.top - AREA.bottom };
    const toX = (delay) => AREA.left + (Math.log(delay / low) / Math.log(high / low)) * inner.width;
    const toY = (share) => AREA.top + inner.height * (1 - tail(Math.min(share, HIGHEST)) / tail(HIGHEST));
    const bottom = HEIGHT - AREA.bottom;
    this.plot.replaceChildren(
      svg(
        "svg",
        { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}` },
        SHARES.flatMap((share) => [
          svg("path", { class: share ? "grid" : "axis", d: `M${AREA.left} ${toY(share)}H${width - AREA.right}` }),
          words(AREA.left - 8, toY(share) + 4, "end", `${100 * share} %`),
        ]),
        steps(low, high, inner.width / 60).flatMap((delay) => [
          svg("path", { class: "grid", d: `M${toX(delay)} ${AREA.top}V${bottom}` }),
          words(toX(delay), bottom + 16, "middle", String(delay)),
        ]),
        words(width - AREA.right, HEIGHT - 4, "end", "ms"),
        this.#lines.flatMap((line) => {
          const points = line.curve.length
            ? line.curve.filter(([delay, share]) => delay > 0 && share <= HIGHEST)
            : PLACES.map(([place, share]) => [line[place], share]);
          const path = points.map(([delay, share], index) => `${index ? "L" : "M"}${toX(delay)} ${toY(share)}`).join("");
          return [
            stroke(line, path),
            ...PLACES.map(([place, share]) =>
              svg(
                "circle",
                { class: "dot", "data-slot": line.slot, cx: toX(line[place]), cy: toY(share), r: 4 },
                svg("title", {}, `${line.label}, ${place.slice(0, 3)}: ${digits(line[place])} ms`),
              ),
            ),
          ];
        }),
      ),
    );
  }
}

/** How far up a share is: one for each factor of ten of what is above it. */
function tail(share) {
  return -Math.log10(1 - share);
}

/** 1, 2 and 5 times powers of ten in a range; fewer where there is no room. */
function steps(low, high, most) {
  const found = (factors) => {
    const all = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++)
      for (const factor of factors) all.push(Number((factor * 10 ** power).toPrecision(1)));
    return all.filter((value) => value >= low && value <= high);
  };
  for (const factors of [[1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 5], [1, 3]]) {
    const all = found(factors);
    if (all.length <= Math.max(most, 2) && all.length) return all;
  }
  return found([1]);
}

function stroke({ slot, key }, path) {
  return svg("path", { class: "delay", "data-slot": slot, d: path, "stroke-dasharray": DASHES[key] });
}

function words(x, y, anchor, text) {
  const node = svg("text", { x, y, "text-anchor": anchor });
  put(node, text);
  return node;
}
