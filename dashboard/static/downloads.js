// Links to the downloads of one run or two: all as one page, the server's plots, and records as CSV or Parquet.

import { runPath } from "./api.js";
import { el } from "./dom.js";

const MEASUREMENTS = ["tcp", "flow", "link", "belief", "phy", "control"];
const IMAGES = ["png", "svg", "pdf"];

/** Rows of links for runs [{slot, name, files}]; without `files`, to every measurement. */
export function downloads(runs) {
  const [a, b] = runs.map(({ name }) => name);
  const query = b ? `?b=${encodeURIComponent(b)}` : "";
  return [
    row("Page", [link(`${runPath(a, "page.html")}${query}`, "HTML", "all of it as one html file")]),
    row(
      "Plot",
      IMAGES.map((format) =>
        link(`${runPath(a, "plot")}.${format}${query}`, format.toUpperCase(), `plot as ${format}`),
      ),
    ),
    ...runs.map(({ slot, name, files }) =>
      row(
        b ? `Records of ${slot}` : "Records",
        kinds(files).map((kind) => records(name, kind)),
      ),
    ),
  ];
}

function kinds(files) {
  const there = files && new Set(files.map((file) => file.name ?? file));
  return MEASUREMENTS.filter((kind) => !there || there.has(`${kind}.parquet`));
}

function records(name, kind) {
  const links = ["csv", "parquet"].map((format) =>
    link(`${runPath(name, "export", kind)}.${format}`, format.toUpperCase(), `${kind} as ${format}`),
  );
  return el("span", { class: "download-group" }, kind, links);
}

function row(words, links) {
  return el("div", { class: "downloads" }, el("span", { class: "hint" }, words), links);
}

function link(path, words, name) {
  return el("a", { href: path, download: true, class: "download", "aria-label": name }, words);
}
