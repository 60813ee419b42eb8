// A grid of charts over one time axis, with the losses on top, and the choice of the link's direction they show: the
// one that carries the traffic, until somebody chooses.

import { Chart } from "./chart.js";
import { segments } from "./dom.js";
import { Losses } from "./losses.js";

export class Charts {
  #shown = "";
  #direction = "";
  #chosen = false;

  /** `specs` is what /api/charts says. */
  constructor(host, specs, view) {
    this.host = host;
    this.view = view;
    this.runs = [];
    this.losses = new Losses(view);
    this.charts = new Map(specs.map((spec) => [spec.key, new Chart(spec, view)]));
    this.directions = segments("Direction of the link", { up: "up", down: "down", both: "both" }, (key) => {
      this.#chosen = true;
      view.set({ direction: key });
    });
    view.onchange(() => {
      this.directions.show(view.direction);
      // another direction means other lines
      if (view.direction !== this.#direction) this.show(this.runs);
      else this.draw();
    });
  }

  /** Show runs: [{slot, data}]; only the charts they can fill. */
  show(runs) {
    this.runs = runs;
    this.#direction = this.view.direction;
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

  /** Look at the direction that carries the traffic. */
  direct() {
    if (this.#chosen || !this.runs.length) return;
    const direction = this.runs[0].data.mainLink;
    if (direction !== this.view.direction) this.view.set({ direction });
  }

  draw() {
    this.losses.draw();
    for (const chart of this.charts.values()) chart.draw();
  }
}
