// What the demo calls things: in plain words for an audience, and in the field's terms for those who ask for them.

import { scheme, schemeSummary } from "./format.js";
import { store, stored } from "./theme.js";

/** name -> [plain, term] */
const WORDS = {
  sender: ["sender", "h1"],
  mobile: ["mobile", "ST"],
  base: ["base station", "BAS"],
  receiver: ["receiver", "h2"],
  rate: ["arrives each second", "goodput, mean of 3 s"],
  chart: ["Data that arrives each second", "Goodput, mean of 3 s"],
  mean: ["Data each second", "Mean goodput"],
  damaged: ["damaged on the air", "frame loss on the air"],
  left: ["left to the sender", "residual loss, left for TCP"],
  damagedCount: ["Damaged on the air", "Frames lost"],
  leftCount: ["Left to the sender", "Left for TCP"],
  repaired: ["Losses repaired", "Losses repaired"],
  timeMark: ["damaged on the air", "frame lost on the air"],
  lostMark: ["left to the sender", "packet left for TCP"],
};
/** in the plain words of a lane */
const ROLES = {
  bare: "Without repair",
  repaired: "Repair on the link",
  untold: "The sender has to guess",
  told: "The sender is told",
};
const SHORT = { bare: "Without", repaired: "With repair", untold: "Guesses", told: "Is told" };

/** Whether the reader wants technical terms. */
export function terms() {
  return stored("terms") === "yes";
}

export function setTerms(on) {
  store("terms", on ? "yes" : "no");
}

/** The word for something; the other word is what its tooltip says. */
export function word(name) {
  return WORDS[name][terms() ? 1 : 0];
}

export function otherWord(name) {
  return WORDS[name][terms() ? 0 : 1];
}

/** The part of a run in the demo, alone or in a pair: "bare" without repair and "repaired" with it; "untold" beside one
 *  whose TCP hears of losses by ELN, which is "told"; else "". */
export function role(run, runs) {
  if (runs.length === 1) return repairs(run.data.info) ? "repaired" : "bare";
  if (runs.length !== 2) return "";
  const differ = (has) => has(runs[0].data.info) !== has(runs[1].data.info);
  const { info } = run.data;
  if (differ(repairs)) return repairs(info) ? "repaired" : "bare";
  if (differ(hears)) return hears(info) ? "told" : "untold";
  return "";
}

function repairs({ scheme: name }) {
  return name !== "none";
}

function hears({ tcp }) {
  return /\beln\b/.test(tcp ?? "");
}

/** A short name for a column: without or with repair, or the scheme. */
export function shortName(run, runs) {
  const plain = SHORT[role(run, runs)];
  return terms() || !plain ? scheme(run.data.info.scheme ?? "") : plain;
}

/** What a run is called, and what its tooltip says. */
export function runName(run, runs) {
  const { info } = run.data;
  const known = ROLES[role(run, runs)];
  const technical = `${scheme(info.scheme ?? "")}${info.tcp ? `, TCP ${info.tcp}` : ""}`;
  if (!known) return { name: technical, hint: schemeSummary(info.scheme) };
  return terms() ? { name: technical, hint: known } : { name: known, hint: technical };
}
