// The names of lines on the page. The server's labels are "SOURCE SUFFIX" (charts/), as in "up FEC frames"; a
// chart says no more than tells its lines apart, and has the whole label at hand.

/** suffixes of the lines that bound a band, the lower one first */
const BOUNDS = [];
/** suffix -> the page's words for it, in the order of lines */
const SHORT = new Map();
/** chart -> words for the line without a suffix, where there is only one source */
const MAIN = new Map();

/** Take the words of all charts from what /api/charts says. */
export function learn(specs) {
  for (const { key, lines } of specs)
    for (const { suffix, short, band } of lines) {
      if (band) BOUNDS.push(suffix);
      if (suffix) SHORT.set(suffix, short || suffix);
      else if (short) MAIN.set(key, short);
    }
}

/** Whether a line bounds a band. */
export function isBound(label) {
  return BOUNDS.includes(parsed(label).suffix);
}

const LINKS = ["up", "down"];

/** Take a label apart: {source, suffix}. */
export function parsed(label) {
  for (const suffix of SHORT.keys()) {
    if (label.endsWith(` ${suffix}`)) return { source: label.slice(0, -suffix.length - 1), suffix };
  }
  return { source: label, suffix: "" };
}

/** Whether a line belongs to the directions shown: "up", "down" or "both"; those of flows always do. */
export function inDirection(label, direction) {
  const { source } = parsed(label);
  return direction === "both" || !LINKS.includes(source) || source === direction;
}

/** Labels in the order of their lines: links before flows, up before down, suffixes as listed above. */
export function ordered(labels) {
  const suffixes = [...SHORT.keys()];
  const rank = (label) => {
    const { source, suffix } = parsed(label);
    const link = LINKS.indexOf(source);
    return [link < 0 ? LINKS.length : link, source, suffix ? suffixes.indexOf(suffix) : -1];
  };
  const ranks = new Map(labels.map((label) => [label, rank(label)]));
  return [...labels].sort((one, other) => {
    const [a, b] = [ranks.get(one), ranks.get(other)];
    return a[0] - b[0] || a[1].localeCompare(b[1], "en", { numeric: true }) || a[2] - b[2];
  });
}

/** What to call lines of one chart and run, in their order. */
export function shortened(chart, labels) {
  const parts = labels.map(parsed);
  const several = (links) =>
    new Set(parts.map(({ source }) => source).filter((source) => LINKS.includes(source) === links)).size > 1;
  const [severalLinks, severalFlows] = [several(true), several(false)];
  return parts.map(({ source, suffix }) => {
    const words = SHORT.get(suffix) ?? MAIN.get(chart) ?? source;
    const alone = !(LINKS.includes(source) ? severalLinks : severalFlows);
    return alone || words === source ? words : `${source} ${words}`;
  });
}
