// Announcements for screen readers: one line at a time; a line that already waits is not added again.

const PAUSE_MS = 1500;
let node = null;
let waiting = [];
let timer = 0;

/** Announce a line, PAUSE_MS or more after the line before it. */
export function announce(words) {
  node ??= document.getElementById("announcer");
  if (!waiting.includes(words)) waiting.push(words);
  // of many lines only the newest three are announced
  waiting = waiting.slice(-3);
  if (!timer) next();
}

function next() {
  const words = waiting.shift();
  timer = words === undefined ? 0 : setTimeout(next, PAUSE_MS);
  if (words !== undefined) node.textContent = words;
}
