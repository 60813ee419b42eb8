// The page's data of its runs: series, loss marks, notes of changes, and the newest state of the rest.
//
// Rules: a series only grows at its end, so points that come again after a reconnection change nothing. What is older
// than the server itself keeps is let go.

/** Times (s since the run's epoch, rising) and values; NaN where there was no value. */
export class Series {
  t = [];
  v = [];

  append(times, values) {
    for (let i = 0; i < times.length; i++) {
      if (times[i] <= this.end) continue;
      this.t.push(times[i]);
      this.v.push(values[i] ?? NaN);
    }
  }

  get end() {
    return this.t.length ? this.t[this.t.length - 1] : -Infinity;
  }

  /** The index of the last point at or before a time, or -1. */
  index(time) {
    let low = 0;
    let high = this.t.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.t[middle] <= time) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  /** The value that held at a time, or NaN when the last point is older than `age` seconds. */
  at(time, age = Infinity) {
    const index = this.index(time);
    return index < 0 || this.t[index] < time - age ? NaN : this.v[index];
  }

  /** The time-weighted mean between two times, NaN where there is nothing. */
  mean(from, to) {
    let sum = 0;
    let span = 0;
    for (let i = Math.max(1, this.index(from) + 1); i < this.t.length && this.t[i] <= to; i++) {
      if (Number.isNaN(this.v[i])) continue;
      const step = this.t[i] - this.t[i - 1];
      sum += this.v[i] * step;
      span += step;
    }
    return span > 0 ? sum / span : NaN;
  }

  forget(before) {
    const count = this.index(before);
    // in large steps: moving an array for each point would cost more than the points
    if (count < 600) return;
    this.t.splice(0, count);
    this.v.splice(0, count);
  }
}

/** One run, as far as the page knows it. */
export class RunData {
  info;
  /** chart key -> label -> Series */
  charts = new Map();
  /** [{t, cause, link, count}], rising */
  marks = [];
  /** [{t, name, value}]: what a person changed, rising */
  notes = [];
  links = {};
  views = {};
  controls = [];
  /** whether the server has said which controls there are */
  controlsKnown = false;
  hidden = {};
  /** the newest time of any point */
  end = 0;
  /** rises with every part taken */
  version = 0;
  /** kind of mark or note -> its newest time */
  #ends = new Map();
  #main = "up";
  #mainSince = -Infinity;

  constructor(info) {
    this.info = info;
  }

  series(chart, label) {
    return this.charts.get(chart)?.get(label);
  }

  labels(chart) {
    return [...(this.charts.get(chart)?.keys() ?? [])];
  }

  /** The direction the traffic goes: that in which more has crossed, so far as is known; looked at once a second. */
  get mainLink() {
    if (this.end >= this.#mainSince + 1 || this.end < this.#mainSince) {
      const carried = (link) => this.series("throughput", link).mean(-Infinity, this.end) || 0;
      const links = this.labels("throughput").sort((one, other) => (one === "up" ? -1 : other === "up" ? 1 : 0));
      this.#main = links.reduce((best, link) => (carried(link) > 2 * carried(best) ? link : best), links[0] ?? "up");
      this.#mainSince = this.end;
    }
    return this.#main;
  }

  /** Take one run's part of a frame, or what `/api/runs/RUN/series` says. */
  take(part, retention = Infinity) {
    // another run under the same name
    if (part.fresh && this.info.epoch_ns && part.info?.epoch_ns !== this.info.epoch_ns) this.#forget();
    if (part.info) this.info = { ...this.info, ...part.info };
    for (const [chart, lines] of Object.entries(part.series ?? {})) {
      if (!this.charts.has(chart)) this.charts.set(chart, new Map());
      const known = this.charts.get(chart);
      for (const [label, { t, v }] of Object.entries(lines)) {
        if (!known.has(label)) known.set(label, new Series());
        const series = known.get(label);
        series.append(t, v);
        if (series.end > this.end) this.end = series.end;
        series.forget(series.end - retention);
      }
    }
    this.#takeMarks(part.marks ?? []);
    insert(
      this.notes,
      this.#news(part.notes ?? [], ({ name }) => name),
    );
    Object.assign(this.links, part.links);
    Object.assign(this.views, part.views);
    if (part.controls) {
      this.controls = part.controls;
      this.controlsKnown = true;
    }
    // number of omitted sources, by kind: {flow: 984}
    if (part.hidden) this.hidden = part.hidden;
    this.version++;
  }

  #forget() {
    this.charts.clear();
    this.#ends.clear();
    this.links = {};
    this.marks.length = this.notes.length = 0;
    this.end = 0;
  }

  #takeMarks(marks) {
    const news = this.#news(marks, ({ cause, link }) => `${cause} ${link}`);
    insert(this.marks, news);
    if (this.marks.length > 40_000) this.marks.splice(0, 10_000);
  }

  /** What is newer than the newest of its kind. */
  #news(entries, kind) {
    const news = entries.filter((entry) => entry.t > (this.#ends.get(kind(entry)) ?? -Infinity));
    for (const entry of news) this.#ends.set(kind(entry), entry.t);
    return news;
  }
}

/** Put entries into a list that rises with t; they belong near its end. */
function insert(list, entries) {
  for (const entry of entries) {
    let place = list.length;
    while (place > 0 && list[place - 1].t > entry.t) place--;
    list.splice(place, 0, entry);
  }
}
