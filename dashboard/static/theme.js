// Light, dark or as the system says; projector mode; and the palette of the canvases.

const THEMES = ["auto", "light", "dark"];
const root = document.documentElement;
const listeners = [];
let cached = null;

/** The theme chosen: auto, light or dark. */
export function theme() {
  return THEMES.includes(stored("theme")) ? stored("theme") : "auto";
}

/** Choose the theme after the present one. */
export function nextTheme() {
  setTheme(THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length]);
}

export function setTheme(name) {
  store("theme", name);
  apply();
}

/** Whether type is large and lines are thick, for the back of a room. */
export function projector() {
  return stored("projector") === "yes";
}

export function setProjector(on) {
  store("projector", on ? "yes" : "no");
  apply();
}

const reduced = matchMedia("(prefers-reduced-motion: reduce)");

/** Whether the reader asked for little motion. */
export function calm() {
  return reduced.matches;
}

/** Call back when colours or sizes have changed. */
export function onTheme(listener) {
  listeners.push(listener);
}

/** The colours of the present theme, by the names of their custom properties (run-a, ink, grid, …), and the font. */
export function palette() {
  cached ??= readPalette();
  return cached;
}

/** The bounds of a band are thin and have the colour of the line within. */
export function boundStyle(style) {
  return { ...style, dash: null, width: style.width / 3 };
}

/** Within a run dashes tell lines apart, by themselves up to their number, so that no reader needs the colours. */
const DASHES = [null, [7, 3], [2, 3], [9, 3, 2, 3], [4, 5], [9, 3, 2, 3, 2, 3]];

/** Lines of run A are cool, those of run B warm. Twice as many lines as there are dashes look different. */
export function lineStyle(slot, index) {
  const colours = palette();
  const names = slot === "B" ? ["run-b", "run-b2"] : ["run-a", "run-a2"];
  const round = Math.floor(index / DASHES.length);
  return {
    colour: colours[names[(index + round) % 2]],
    dash: DASHES[index % DASHES.length],
    width: (projector() ? 2.6 : 1.5) + (index === 0 ? 0.4 : 0),
  };
}

/** A setting this browser keeps; "" without one. */
export function stored(key) {
  try {
    return localStorage.getItem(`fadelab.${key}`) ?? "";
  } catch {
    return "";
  }
}

export function store(key, value) {
  try {
    localStorage.setItem(`fadelab.${key}`, value);
  } catch {
    // a browser that keeps nothing shows the page as well
  }
}

function apply() {
  if (theme() === "auto") delete root.dataset.theme;
  else root.dataset.theme = theme();
  root.classList.toggle("projector", projector());
  cached = null;
  for (const listener of listeners) listener();
}

function readPalette() {
  const names = [
    "surface",
    "ink",
    "muted",
    "grid",
    "axis",
    "run-a",
    "run-a2",
    "run-b",
    "run-b2",
    "text-a",
    "text-b",
    "corruption",
    "given-up",
    "congestion",
    "note",
  ];
  // a custom property keeps light-dark() as it stands; as a colour of an element it is resolved
  const probe = document.createElement("span");
  probe.hidden = true;
  document.body.append(probe);
  const colours = {};
  for (const name of names) {
    probe.style.color = `var(--${name})`;
    colours[name] = getComputedStyle(probe).color;
  }
  colours.font = getComputedStyle(probe).fontFamily;
  probe.remove();
  return colours;
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
apply();
