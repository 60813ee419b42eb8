// The controls of live runs: built from the server's descriptions, which also tell whether a change has been taken.
//
// Rules: a control that cannot be changed says why; a change shows that it is pending, accepted or refused; a control
// somebody holds is not moved under their hand.

import { announce } from "./announce.js";
import { post, runPath } from "./api.js";
import { el, mark, put } from "./dom.js";
import { digits } from "./format.js";
import { Unlock } from "./unlock.js";

/** a slider that moves sends this long after its last step */
const DEBOUNCE_MS = 120;
const TOLD_MS = 2500;
/** what the server said before it took a change may arrive after that for so long */
const HELD_MS = 600;

export class Controls {
  #runs = [];
  #widgets = new Map();
  #target = "both";
  #described = "";

  constructor(host, session) {
    this.host = host;
    this.session = session;
    this.fields = el("div", { class: "controls" });
    this.targets = el("fieldset", { class: "segments" });
    this.stopButton = el("button", { type: "button", class: "danger", onclick: () => this.#askToStop() }, "Stop run");
    this.none = el("p", { class: "hint" });
    this.unlock = new Unlock(session, "To change a run, give the token the dashboard printed when it started");
    host.append(
      el("div", { class: "panel-head" }, el("h2", {}, "Controls"), this.stopButton),
      this.unlock.node,
      this.targets,
      this.none,
      this.fields,
    );
    this.dialog = document.getElementById("stop-dialog");
    this.dialog.addEventListener("close", () => this.dialog.returnValue === "stop" && this.#stop());
    session.onchange(() => this.update());
  }

  show(runs) {
    this.#runs = runs;
    this.#described = "";
    this.#drawTargets();
    this.update();
  }

  update() {
    const steered = this.#steered();
    const live = steered.filter(({ data }) => data.info.live && data.controls.length);
    const control = live[0]?.data.controls ?? [];
    this.host.hidden = !this.#runs.some(({ data }) => data.info.live);
    this.stopButton.hidden = !live.length;
    this.stopButton.disabled = !this.session.authorised;
    const unknown = steered.some(({ data }) => data.info.live && data.info.controlled && !data.controlsKnown);
    const why = unknown ? "Waiting for the first record." : "This run cannot be changed from here.";
    put(this.none, control.length ? "" : why);
    this.none.hidden = control.length > 0;
    const described = control.map(({ name, kind, choices }) => [name, kind, choices]).join();
    if (described !== this.#described) this.#build(control, described);
    for (const description of control) {
      this.#widgets.get(description.name).update(description, this.session.authorised);
    }
  }

  #steered() {
    return this.#runs.filter(({ slot }) => this.#target === "both" || slot === this.#target);
  }

  #build(controls, described) {
    this.#described = described;
    this.#widgets = new Map(
      controls.map((control) => [control.name, makeWidget(control, (value) => this.#change(control, value))]),
    );
    this.fields.replaceChildren(...[...this.#widgets.values()].map(({ node }) => node));
  }

  #drawTargets() {
    const several = this.#runs.filter(({ data }) => data.info.live && data.info.controlled).length > 1;
    this.targets.hidden = !several;
    if (!several) this.#target = "both";
    const choose = (event) => {
      this.#target = event.target.value;
      this.update();
    };
    const option = (value, words) => {
      const input = el("input", { type: "radio", name: "target", value, id: `target-${value}`, onchange: choose });
      input.checked = value === this.#target;
      return [input, el("label", { for: `target-${value}` }, words)];
    };
    this.targets.replaceChildren(
      el("legend", { class: "visually-hidden" }, "Apply changes to"),
      ...option("both", "both runs"),
      ...this.#runs.flatMap(({ slot, data }) => option(slot, `${slot} · ${data.info.scheme}`)),
    );
  }

  async #change(control, value) {
    const runs = this.#steered().filter(({ data }) => data.info.live && data.controls.length);
    const answers = await Promise.allSettled(
      runs.map(({ data }) => post(runPath(data.info.name, "controls"), { name: control.name, value })),
    );
    const refused = answers.find(({ status }) => status === "rejected");
    if (refused) {
      announce(`${control.label} refused: ${refused.reason.message}`);
      throw refused.reason;
    }
    // until the stream says so itself
    for (const { data } of runs) {
      data.controls = data.controls.map((known) => (known.name === control.name ? { ...known, value } : known));
    }
    announce(`${control.label} ${inWords(value)} accepted`);
  }

  #askToStop() {
    const names = this.#steered()
      .filter(({ data }) => data.info.live)
      .map(({ slot, data }) => `${slot}: ${data.info.title || data.info.name}`);
    put(this.dialog.querySelector("[data-stop]"), names.join(", "));
    this.dialog.returnValue = "";
    this.dialog.showModal();
  }

  async #stop() {
    for (const { data } of this.#steered().filter((run) => run.data.info.live)) {
      try {
        await post(runPath(data.info.name, "stop"));
        announce("The run was asked to stop");
      } catch (error) {
        put(this.none, error.message);
        this.none.hidden = false;
      }
    }
  }
}

function makeWidget(control, change) {
  const kinds = { range: RangeWidget, choice: ChoiceWidget, switch: SwitchWidget };
  return new kinds[control.kind](control, change);
}

/** What the three kinds share: label, reason, verdict. */
class Widget {
  #timer = 0;
  #toldTimer = 0;
  #pending = 0;
  #heldUntil = 0;

  constructor(control, change) {
    this.control = control;
    this.change = change;
    this.id = `control-${control.name}`;
    this.verdict = el("span", { class: "verdict-mark", "data-state": "" });
    this.why = el("p", { class: "why", id: `${this.id}-why` });
    this.inputs = this.makeInputs();
    const label = el("label", { for: this.id }, control.label);
    this.node = el(
      "div",
      { class: `control ${control.kind}`, "data-control": control.name },
      el("div", { class: "control-head" }, label, this.verdict),
      this.body(),
      this.why,
    );
  }

  update(control, authorised) {
    this.control = control;
    put(this.why, control.why_not);
    this.why.hidden = !control.why_not;
    for (const input of this.inputs) {
      input.disabled = !authorised || Boolean(control.why_not);
      mark(input, "aria-describedby", control.why_not ? this.why.id : null);
    }
    if (!this.busy) this.put(control.value);
  }

  get busy() {
    return this.#pending > 0 || this.#timer !== 0 || performance.now() < this.#heldUntil;
  }

  send(value, delay = 0) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#send(value), delay);
    this.#tell("pending", "…");
  }

  async #send(value) {
    this.#timer = 0;
    this.#pending++;
    try {
      await this.change(value);
      this.control = { ...this.control, value };
      this.#heldUntil = performance.now() + HELD_MS;
      this.#tell("accepted", "set");
    } catch (error) {
      this.#tell("refused", error.message);
      this.put(this.control.value);
    } finally {
      this.#pending--;
    }
  }

  #tell(state, words) {
    mark(this.verdict, "data-state", state);
    put(this.verdict, words);
    clearTimeout(this.#toldTimer);
    if (state === "pending") return;
    this.#toldTimer = setTimeout(() => this.#tell("", ""), state === "refused" ? 3 * TOLD_MS : TOLD_MS);
  }
}

class RangeWidget extends Widget {
  makeInputs() {
    const { low, high, step, label } = this.control;
    const bounds = { min: low, max: high, step: step || "any" };
    const unit = this.control.unit;
    this.slider = el("input", {
      type: "range",
      id: this.id,
      ...bounds,
      oninput: () => this.#moved(this.slider.value, DEBOUNCE_MS),
    });
    this.number = el("input", {
      type: "number",
      "aria-label": `${label} in ${unit || "numbers"}`,
      ...bounds,
      onchange: () => this.#typed(),
    });
    return [this.slider, this.number];
  }

  body() {
    return el("div", { class: "row" }, this.slider, this.number, el("span", { class: "unit" }, this.control.unit));
  }

  put(value) {
    for (const input of this.inputs) {
      const held = input === this.number && input === document.activeElement;
      if (!held && input.value !== String(value)) input.value = value;
    }
    mark(this.slider, "aria-valuetext", `${digits(value)} ${this.control.unit}`);
  }

  #moved(text, delay) {
    const value = Number(text);
    this.slider.value = this.number.value = value;
    this.send(value, delay);
  }

  #typed() {
    const value = Number(this.number.value);
    if (this.number.value === "" || !Number.isFinite(value)) this.put(this.control.value);
    else this.#moved(Math.min(this.control.high, Math.max(this.control.low, value)), 0);
  }
}

class ChoiceWidget extends Widget {
  makeInputs() {
    const options = this.control.choices.map((choice) => el("option", { value: choice }, choice));
    this.select = el("select", { id: this.id, onchange: () => this.send(this.select.value) }, options);
    return [this.select];
  }

  body() {
    return this.select;
  }

  put(value) {
    if (this.select.value !== value) this.select.value = value;
  }
}

class SwitchWidget extends Widget {
  makeInputs() {
    this.input = el("input", {
      type: "checkbox",
      role: "switch",
      id: this.id,
      onchange: () => this.send(this.input.checked),
    });
    return [this.input];
  }

  body() {
    return this.input;
  }

  put(value) {
    this.input.checked = Boolean(value);
  }
}

function inWords(value) {
  return value === true ? "on" : value === false ? "off" : typeof value === "number" ? digits(value) : value;
}
