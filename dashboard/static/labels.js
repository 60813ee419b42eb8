// What lines are called on the page. The server's labels are "SOURCE SUFFIX" (charts.py), as in "up FEC frames"; a
// chart says no more than tells its lines apart, and has the whole label at hand.

/** suffix -> what the page says, in the order of lines */
const SHORT = new Map([
  ["retransmissions", "ARQ"],
  ["FEC frames", "FEC"],
  ["FEC repairs", "rebuilt"],
  ["ELN marks", "ELN"],
  ["TCP retransmits", "TCP"],
  ["ssthresh", "ssthresh"],
  ["RTO", "RTO"],
  ["SNR", "SNR"],
  ["EVM", "EVM"],
  ["before", "on the air"],
  ["after", "left for TCP"],
]);

const SUFFIXES = [...SHORT.keys()];

/** what the line without a suffix shows, where there is only one source */
const MAIN = { cwnd: "cwnd", srtt: "SRTT" };

const LINKS = ["up", "down"];

/** Take a label apart: {source, suffix}. */
export function parsed(label) {
  for (const suffix of SUFFIXES) {
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
  const rank = (label) => {
    const { source, suffix } = parsed(label);
    const link = LINKS.indexOf(source);
    return [link < 0 ? LINKS.length : link, source, suffix ? SUFFIXES.indexOf(suffix) : -1];
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
    const words = SHORT.get(suffix) ?? MAIN[chart] ?? source;
    const alone = !(LINKS.includes(source) ? severalLinks : severalFlows);
    return alone || words === source ? words : `${source} ${words}`;
  });
}
