// Lets the search work on a page that is opened from the disk. A browser starts no worker for file:, so the search's
// worker runs in a hidden frame, which gets what a worker has: postMessage and importScripts.
if (location.protocol === "file:") {
  const load = (page, address) =>
    new Promise((resolve, reject) => {
      const script = page.createElement("script");
      script.src = address;
      script.onload = resolve;
      script.onerror = () => reject(new Error(`${address} cannot be loaded`));
      page.head.append(script);
    });

  window.Worker = class extends EventTarget {
    #frame = document.createElement("iframe");
    #inside;

    constructor(address) {
      super();
      const absolute = new URL(address, location.href).href;
      this.#frame.hidden = true;
      this.#frame.srcdoc = "<!doctype html>";
      const made = new Promise((resolve) => this.#frame.addEventListener("load", resolve, { once: true }));
      document.documentElement.append(this.#frame);
      this.#inside = made.then(async () => {
        const inside = this.#frame.contentWindow;
        inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
        inside.importScripts = async (...scripts) => {
          for (const script of scripts) await load(inside.document, new URL(script, absolute).href);
        };
        await load(inside.document, absolute);
        return inside;
      });
    }

    postMessage(data) {
      this.#inside.then((inside) => inside.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.#frame.remove();
    }
  };
}
