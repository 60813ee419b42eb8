// A grid of charts over one time axis, with the losses on top.

import { Chart } from "./chart.js";
import { Losses } from "./losses.js";

export class Charts {
  #shown = "";

  /** `specs` is what /api/charts says. */
  constructor(host, specs, view) {
    this.host = host;
    this.losses = new Losses(view);
    this.charts = new Map(specs.map((spec) => [spec.key, new Chart(spec, view)]));
    view.onchange(() => this.draw());
  }

  /** Show runs: [{slot, data}]; only the charts they can fill. */
  show(runs) {
    this.runs = runs;
    const offered = new Set(runs.flatMap(({ data }) => data.info.charts ?? [...this.charts.keys()]));
    const shown = [...this.charts.values()].filter(({ spec }) => offered.has(spec.key));
    const keys = shown.map(({ spec }) => spec.key).join();
    if (keys !== this.#shown) {
      this.#shown = keys;
      this.host.replaceChildren(this.losses.figure, ...shown.map(({ figure }) => figure));
    }
    this.losses.show(runs);
    for (const chart of this.charts.values()) chart.show(offered.has(chart.spec.key) ? runs : []);
  }

  draw() {
    this.losses.draw();
    for (const chart of this.charts.values()) chart.draw();
  }
}
