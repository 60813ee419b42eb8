// The live stream: server-sent events, and coming back after they broke off.
//
// The browser reconnects by itself while the server is merely silent; an answer that is no stream (a restarted server
// does not know the run) ends its attempts, and ours begin.

const RETRY_MS = 1500;
/** a ping comes every second when nothing else does */
const SILENCE_MS = 8000;

export class Stream {
  #source = null;
  #timer = 0;
  #watchdog = 0;
  #state = "";

  /**
   * `onframe` gets each frame; `onruns` is called when a run begins or ends; `onstate` gets "connecting", "live" or
   * "reconnecting", when that changes.
   */
  constructor(runs, { onframe, onruns, onstate }) {
    this.runs = runs;
    this.onframe = onframe;
    this.onruns = onruns;
    this.onstate = onstate;
    this.#tell("connecting");
    this.#open();
  }

  close() {
    this.#source?.close();
    clearTimeout(this.#timer);
    clearTimeout(this.#watchdog);
    this.#source = null;
  }

  #open() {
    const query = new URLSearchParams([...this.runs.map((run) => ["run", run]), ["comments", "1"]]);
    const source = new EventSource(`/api/stream?${query}`);
    this.#source = source;
    source.addEventListener("frame", (event) => {
      this.#alive();
      this.onframe(JSON.parse(event.data));
    });
    source.addEventListener("runs", () => {
      this.#alive();
      this.onruns();
    });
    source.addEventListener("ping", () => this.#alive());
    source.addEventListener("open", () => this.#alive());
    source.addEventListener("error", () => {
      this.#tell("reconnecting");
      if (source.readyState === EventSource.CLOSED) this.#again();
    });
  }

  #alive() {
    this.#tell("live");
    clearTimeout(this.#watchdog);
    this.#watchdog = setTimeout(() => {
      this.#tell("reconnecting");
      this.#again(0);
    }, SILENCE_MS);
  }

  #again(delay = RETRY_MS) {
    this.close();
    this.#timer = setTimeout(() => this.#open(), delay);
  }

  #tell(state) {
    if (state === this.#state) return;
    this.#state = state;
    this.onstate(state);
  }
}
