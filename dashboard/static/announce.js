// What a screen reader should say: one polite line at a time, and none that has hardly been said.

const PAUSE_MS = 1500;
let node = null;
let waiting = [];
let timer = 0;

/** Say a line when the one before has had its time. */
export function announce(words) {
  node ??= document.getElementById("announcer");
  if (!waiting.includes(words)) waiting.push(words);
  // of a flood only the newest is worth hearing
  waiting = waiting.slice(-3);
  if (!timer) next();
}

function next() {
  const words = waiting.shift();
  timer = words === undefined ? 0 : setTimeout(next, PAUSE_MS);
  if (words !== undefined) node.textContent = words;
}
