// Starting runs from the page: the starter's offers, or the reason why there are none now.

import { announce } from "./announce.js";
import { post } from "./api.js";
import { el, put } from "./dom.js";
import { scheme, schemeSummary } from "./format.js";
import { Unlock } from "./unlock.js";

/** side by side by default */
const COMPARED = ["none", "slacp"];

export class Start {
  #offers = [];
  #offered = "";

  constructor(host, session) {
    this.host = host;
    this.session = session;
    this.unlock = new Unlock(session, "To start runs, give the token the dashboard printed when it started");
    this.scenario = el("select", { id: "start-scenario", onchange: () => this.#drawOffer() });
    this.tier = el("select", { id: "start-tier" });
    this.description = el("p", { class: "hint" });
    this.schemes = el("fieldset", { class: "checks" });
    this.seconds = el("input", {
      id: "start-seconds",
      type: "number",
      min: 5,
      max: 3600,
      step: 1,
      value: 120,
      required: true,
    });
    this.seed = el("input", { id: "start-seed", type: "number", min: 0, step: 1, value: 1, required: true });
    this.button = el("button", { type: "submit", class: "primary" }, "Start");
    this.problem = el("p", { class: "problem", role: "alert" });
    this.form = el(
      "form",
      { class: "start-form", onsubmit: (event) => this.#submit(event) },
      field("Scenario", this.scenario),
      this.description,
      el(
        "div",
        { class: "fields" },
        field("Tier", this.tier),
        field("Seconds", this.seconds),
        field("Seed", this.seed),
      ),
      this.schemes,
      el("div", { class: "row" }, this.button),
      this.problem,
    );
    this.none = el("p", { class: "hint" });
    host.append(
      el("div", { class: "panel-head" }, el("h2", {}, "Start a run")),
      this.unlock.node,
      this.none,
      this.form,
    );
    session.onchange(() => this.update());
    this.update();
  }

  update() {
    const starter = this.session.state?.starter ?? null;
    const why = starter ? starter.why_not : "This dashboard only watches: it starts no runs.";
    put(this.none, why && starter ? `Nothing can be started just now: ${why}.` : why);
    this.none.hidden = !why;
    this.form.hidden = !starter || Boolean(why);
    this.unlock.node.hidden = this.session.authorised || this.form.hidden;
    const offered = JSON.stringify(starter?.offers ?? []);
    if (offered !== this.#offered) {
      this.#offered = offered;
      this.#offers = starter?.offers ?? [];
      this.scenario.replaceChildren(...this.#offers.map(({ name }) => el("option", { value: name }, name)));
      this.#drawOffer();
    }
    this.button.disabled = !this.session.authorised || Boolean(why) || !this.#offers.length;
  }

  #drawOffer() {
    const offer = this.#offers.find(({ name }) => name === this.scenario.value);
    if (!offer) return;
    put(this.description, offer.description);
    this.tier.replaceChildren(...offer.tiers.map((tier) => el("option", { value: tier }, tier)));
    const compared = offer.schemes.filter((name) => COMPARED.includes(name));
    this.schemes.replaceChildren(
      el("legend", {}, "Link schemes, side by side"),
      ...offer.schemes.flatMap((name) => {
        const input = el("input", { type: "checkbox", id: `scheme-${name}`, value: name });
        input.checked = !compared.length || compared.includes(name);
        const words = `${name}${scheme(name) === name ? "" : ` (${scheme(name)})`}`;
        return [input, el("label", { for: input.id, title: schemeSummary(name) }, words)];
      }),
    );
  }

  async #submit(event) {
    event.preventDefault();
    const schemes = [...this.schemes.querySelectorAll("input:checked")].map(({ value }) => value);
    put(this.problem, schemes.length ? "" : "choose at least one link scheme");
    if (!schemes.length) return;
    this.button.disabled = true;
    put(this.button, "Starting …");
    try {
      await post("/api/start", {
        scenario: this.scenario.value,
        tier: this.tier.value,
        schemes,
        seconds: Number(this.seconds.value),
        seed: Number(this.seed.value),
      });
      announce("The run is starting");
    } catch (error) {
      put(this.problem, error.message);
    }
    put(this.button, "Start");
    await this.session.refresh();
  }
}

function field(words, input) {
  return el("div", { class: "field" }, el("label", { for: input.id }, words), input);
}
