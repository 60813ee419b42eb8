// Elements made in one expression. Texts are set as text, never parsed: a run's name cannot become markup.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element; `on…` attributes are listeners, true is an empty attribute, false and null are none. */
export function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

/** One of the page's icons (symbols in index.html). */
export function icon(name) {
  return svg("svg", { class: "icon", "aria-hidden": "true" }, svg("use", { href: `#icon-${name}` }));
}

/** Set a text only when it differs: an untouched node costs no layout. */
export function put(node, words) {
  if (node.textContent !== words) node.textContent = words;
}

/** Set or remove an attribute only when it differs. */
export function mark(node, name, value) {
  if (value === null || value === false) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
  } else if (node.getAttribute(name) !== String(value)) {
    node.setAttribute(name, value);
  }
}

/** A group of buttons, one of them pressed: {node, show}. `choose` gets a key; `show` presses its button. */
export function segments(label, words, choose) {
  const buttons = Object.entries(words).map(([key, text]) => [
    key,
    el("button", { type: "button", onclick: () => choose(key) }, text),
  ]);
  const node = el(
    "div",
    { class: "segments", role: "group", "aria-label": label },
    buttons.map(([, button]) => button),
  );
  const show = (pressed) => {
    for (const [key, button] of buttons) mark(button, "aria-pressed", String(key === pressed));
  };
  return { node, show };
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}
