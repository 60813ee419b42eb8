// The server's state, read every other second: version, live runs, starter, database, and whether this
// browser may change things.

import { get, post } from "./api.js";
import { announce } from "./announce.js";

const EVERY_MS = 2000;

export class Session {
  /** the newest answer of /api/state, or null */
  state = null;
  /** whether the server answered the last time */
  reachable = true;
  #listeners = [];
  #timer = 0;

  onchange(listener) {
    this.#listeners.push(listener);
  }

  /** Ask now, and from now on again and again. */
  async refresh() {
    clearTimeout(this.#timer);
    try {
      this.state = await get("/api/state");
      this.reachable = true;
    } catch {
      this.reachable = false;
    }
    for (const listener of this.#listeners) listener(this);
    this.#timer = setTimeout(() => this.refresh(), EVERY_MS);
  }

  get authorised() {
    return this.state?.authorised ?? false;
  }

  get live() {
    return this.state?.live ?? [];
  }

  /** Exchange the token for the right to change things. Raises ApiError. */
  async login(token) {
    await post("/api/login", { token });
    announce("Unlocked");
    await this.refresh();
  }
}
