// The page: which view the address asks for, the header, and the keys. Read first: live.js.

import { get } from "./api.js";
import { Campaigns } from "./campaigns.js";
import { el, mark, put } from "./dom.js";
import { learnSchemes, moment, scheme, text } from "./format.js";
import { History, remarks } from "./history.js";
import { learn } from "./labels.js";
import { Live } from "./live.js";
import { Past } from "./past.js";
import { Session } from "./session.js";
import { Start } from "./start.js";
import { nextTheme, onTheme, projector, setProjector, theme } from "./theme.js";
import { Unlock } from "./unlock.js";

const VIEWS = ["live", "demo", "runs", "campaigns", "past"];
const RECENT = 6;

/** What tests and curious people may look at: latency in ms of the newest points drawn, and whether the page stands. */
window.fadelab = { latency: [], ready: false };

async function begin() {
  const session = new Session();
  session.onchange(({ state }) => learnSchemes(state?.schemes, state?.scheme_summaries));
  await session.refresh();
  if (session.state?.token_to_read && !session.authorised) return drawGate(session);
  const specs = await get("/api/charts");
  learn(specs);
  const live = new Live(session, specs, window.fadelab.latency);
  const history = new History(document.getElementById("runs"));
  const past = new Past(document.getElementById("past"), specs);
  const campaigns = new Campaigns(document.getElementById("campaigns"));
  new Start(document.querySelector("[data-part=start]"), session);
  session.onchange(() => drawHeader(session));
  let running = 0;
  session.onchange(() => {
    const before = running;
    running = session.live.filter((info) => info.live).length;
    if (running < before) drawRecent();
  });
  const route = () => show(location.hash, { live, history, past, campaigns });
  window.addEventListener("hashchange", route);
  bindKeys(live);
  bindHeader();
  await session.refresh();
  route();
  drawRecent();
  Object.assign(window.fadelab, { live, session, ready: true });
  document.documentElement.dataset.ready = "";
}

/** Where reading takes the token, too, there is nothing but the field for it. */
function drawGate(session) {
  const { node } = new Unlock(
    session,
    "This dashboard shows itself to those with its token: it stands where the dashboard was started",
  );
  document
    .getElementById("main")
    .replaceChildren(el("section", { class: "gate panel" }, el("h1", {}, "fadelab"), node));
  session.onchange(() => session.authorised && location.reload());
  document.documentElement.dataset.ready = "";
}

// -- views -----------------------------------------------------------------------------------------------------

function show(hash, { live, history, past, campaigns }) {
  const [path, query] = hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/").map(decodeURIComponent);
  const views = {
    runs: () => history.show(new URLSearchParams(query)),
    campaigns: () => campaigns.show(),
    run: () => past.show(rest.slice(0, 1)),
    compare: () => past.show(rest.slice(0, 2)),
  };
  const view = ["demo", "runs", "campaigns"].includes(name) ? name : name in views ? "past" : "live";
  document.documentElement.dataset.view = view;
  for (const id of VIEWS) document.getElementById(id).hidden = id !== view;
  for (const link of document.querySelectorAll("[data-view]")) {
    mark(link, "aria-current", link.dataset.view === (view === "past" ? "runs" : view) ? "page" : null);
  }
  if (view === "live" || view === "demo") live.choose(name === "live" ? rest.filter(Boolean) : []);
  else views[name]();
}

/** The newest runs, where no live one takes the room. */
async function drawRecent() {
  const host = document.querySelector("[data-part=recent]");
  let runs = [];
  try {
    ({ runs } = await get("/api/runs"));
  } catch {
    // the history view shows the error
  }
  host.replaceChildren(
    ...runs
      .slice(0, RECENT)
      .map((run) =>
        el(
          "li",
          {},
          el(
            "a",
            { href: `#/run/${encodeURIComponent(run.name)}` },
            run.scenario ? `${run.scenario}, ${scheme(run.scheme ?? "")}` : run.name,
          ),
          el("span", { class: "number" }, text(run.goodput_bps, "bit/s")),
          el("span", { class: "hint" }, [moment(run.started), run.tier, remarks(run)].filter(Boolean).join(" · ")),
        ),
      ),
  );
  if (!runs.length) host.append(el("li", { class: "hint" }, "There is none yet."));
}

// -- header ----------------------------------------------------------------------------------------------------

function drawHeader({ state }) {
  const node = document.getElementById("database");
  const database = state?.database ?? null;
  node.hidden = !database;
  if (database) {
    const name = database.state ?? "up";
    mark(node, "data-state", name);
    put(node.querySelector(".words"), `database ${name}${database.waiting ? `, ${database.waiting} waiting` : ""}`);
    mark(node, "title", database.message || null);
  }
  if (state) put(document.getElementById("version"), state.version);
}

function bindHeader() {
  // the address is the views': the link leads to the content without it
  document.querySelector("[data-skip]").addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById("main").focus();
  });
  const themeButton = document.getElementById("theme");
  const projectorButton = document.getElementById("projector");
  const draw = () => {
    mark(themeButton, "data-theme", theme());
    mark(themeButton, "aria-label", `Theme: ${theme()}`);
    mark(themeButton, "title", `Theme: ${theme()} (d)`);
    mark(projectorButton, "aria-pressed", String(projector()));
  };
  themeButton.addEventListener("click", nextTheme);
  projectorButton.addEventListener("click", () => setProjector(!projector()));
  document.getElementById("help").addEventListener("click", () => document.getElementById("help-dialog").showModal());
  onTheme(draw);
  draw();
}

// -- keys (listed in the help dialog of index.html) ------------------------------------------------------------

function bindKeys(live) {
  const keys = {
    " ": () => live.pause(),
    1: () => live.setWindow("30"),
    2: () => live.setWindow("120"),
    3: () => live.setWindow("all"),
    0: () => live.time.set({ zoom: null }),
    l: () => (location.hash = "#/"),
    a: () => (location.hash = "#/demo"),
    r: () => (location.hash = "#/runs"),
    c: () => (location.hash = "#/campaigns"),
    d: () => nextTheme(),
    p: () => setProjector(!projector()),
    "/": () => {
      location.hash = "#/runs";
      setTimeout(() => document.getElementById("history-text").focus(), 0);
    },
    "?": () => document.getElementById("help-dialog").showModal(),
  };
  const demoKeys = {
    t: () => live.demo.press("terms"),
    f: () => live.demo.press("fade"),
    b: () => live.demo.press("burst"),
    i: () => live.demo.press("interferer"),
    g: () => live.demo.tour.on || live.demo.press("tour begin"),
  };
  // those of a presenter's remote control, too
  const tourKeys = {
    ArrowRight: () => live.demo.press("tour next"),
    ArrowLeft: () => live.demo.press("tour previous"),
    PageDown: () => live.demo.press("tour next"),
    PageUp: () => live.demo.press("tour previous"),
    u: () => live.demo.press(`tour ${live.demo.tour.unattended ? "attended" : "unattended"}`),
  };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape")
      for (const open of document.querySelectorAll(":is(.menu, .values)[open]")) open.open = false;
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const guided = live.demo.visible && live.demo.tour.on && live.session.authorised;
    const act =
      keys[event.key] ?? (live.demo.visible ? demoKeys[event.key] : undefined) ?? (guided ? tourKeys[event.key] : undefined);
    if (event.target.closest("input:not([type=checkbox]), select, textarea") || !act) return;
    // the space key belongs to the focused element, where it can be pressed
    if (event.key === " " && event.target.closest("button, a, summary, input")) return;
    event.preventDefault();
    act();
  });
}

begin().catch((error) => {
  const node = document.getElementById("message");
  put(node, `The page cannot begin: ${error.message}. Reload it when the dashboard runs.`);
  node.hidden = false;
  throw error;
});
