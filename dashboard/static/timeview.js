// The common state of a view's charts: the time axis with window, zoom, pause and cursor, and the link's direction.

export class TimeView {
  /** seconds shown while following; Infinity is the whole run */
  window = Infinity;
  /** up, down or both */
  direction = "up";
  /** [from, to] while zoomed, else null */
  zoom = null;
  /** the time at which the display stands still, else null */
  paused = null;
  /** where the cursor is: 0 is the left edge, 1 the right one; null without a cursor */
  cursor = null;
  /** the newest time of what is shown */
  end = 0;
  #listeners = [];

  onchange(listener) {
    this.#listeners.push(listener);
  }

  /** The times at the edges, in seconds. */
  range() {
    if (this.zoom) return this.zoom;
    const end = this.paused ?? this.end;
    const span = Math.min(this.window, Math.max(end, 5));
    return [Math.max(end - span, 0), Math.max(end, span)];
  }

  /** The time under the cursor, or null. */
  time() {
    if (this.cursor === null) return null;
    const [low, high] = this.range();
    return low + this.cursor * (high - low);
  }

  set(changes) {
    Object.assign(this, changes);
    for (const listener of this.#listeners) listener();
  }

  /** Make an element with a plot in it show and move the cursor, zoom by dragging, and reset by a double click. */
  attach(host, plotArea) {
    const box = host.appendChild(document.createElement("div"));
    box.className = "zoom-box";
    let start = null;
    const fraction = (event) => {
      const { left, width } = plotArea();
      return Math.min(1, Math.max(0, (event.clientX - host.getBoundingClientRect().left - left) / width));
    };
    const draw = (from, to) => {
      const { left, width } = plotArea();
      box.style.left = `${left + Math.min(from, to) * width}px`;
      box.style.width = `${Math.abs(to - from) * width}px`;
      box.classList.toggle("dragging", Math.abs(to - from) * width > 4);
    };
    host.addEventListener("pointermove", (event) => {
      const at = fraction(event);
      if (start === null) this.set({ cursor: at });
      else draw(start, at);
    });
    host.addEventListener("pointerleave", () => this.set({ cursor: null }));
    host.addEventListener("pointerdown", (event) => {
      // a finger scrolls the page; two keys and the window's buttons zoom as well
      if (event.button !== 0 || event.pointerType === "touch") return;
      start = fraction(event);
      host.setPointerCapture(event.pointerId);
    });
    const finish = (event) => {
      if (start === null) return;
      const [from, to] = [start, fraction(event)].sort((one, other) => one - other);
      start = null;
      box.classList.remove("dragging");
      if (event.type !== "pointerup" || (to - from) * plotArea().width <= 4) return;
      const [low, high] = this.range();
      this.set({ zoom: [low + from * (high - low), low + to * (high - low)] });
    };
    host.addEventListener("pointerup", finish);
    host.addEventListener("pointercancel", finish);
    host.addEventListener("dblclick", () => this.set({ zoom: null }));
    host.addEventListener("keydown", (event) => this.#key(event));
    host.addEventListener("blur", () => this.set({ cursor: null }));
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const [low, high] = this.range();
    const span = high - low;
    const steps = { ArrowLeft: -0.01, ArrowRight: 0.01, PageUp: -0.1, PageDown: 0.1 };
    const centre = low + (this.cursor ?? 0.5) * span;
    if (event.key in steps) {
      this.set({ cursor: Math.min(1, Math.max(0, (this.cursor ?? 1) + steps[event.key])) });
    } else if (event.key === "+") this.set({ zoom: [centre - span / 4, centre + span / 4] });
    else if (event.key === "-" && this.zoom) this.set({ zoom: [Math.max(0, centre - span), centre + span] });
    else if (event.key === "Escape") this.set({ zoom: null, cursor: null });
    else return;
    event.preventDefault();
  }
}
