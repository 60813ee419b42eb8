// The field for the token; hidden when this browser may already change settings.

import { el, put } from "./dom.js";

let count = 0;

export class Unlock {
  constructor(session, words) {
    const id = `token-${++count}`;
    this.problem = el("p", { class: "problem", role: "alert" });
    this.field = el("input", { id, type: "password", autocomplete: "off", spellcheck: "false", required: true });
    this.node = el(
      "form",
      { class: "unlock", onsubmit: (event) => this.#submit(event, session) },
      el("label", { for: id }, words),
      el("div", { class: "row" }, this.field, el("button", { type: "submit" }, "Unlock")),
      this.problem,
    );
    session.onchange(() => (this.node.hidden = session.authorised));
    this.node.hidden = session.authorised;
  }

  async #submit(event, session) {
    event.preventDefault();
    put(this.problem, "");
    try {
      await session.login(this.field.value.trim());
      this.field.value = "";
    } catch (error) {
      put(this.problem, error.message);
      this.field.select();
    }
  }
}
