// The server's JSON. Every failure becomes an ApiError with one line for people.

export class ApiError extends Error {
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

/** GET a JSON document. */
export function get(path, parameters = {}) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== "" && value != null));
  return ask(query.size ? `${path}?${query}` : path, {});
}

/** POST a JSON document. */
export function post(path, body = {}) {
  return ask(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
}

/** The path of a run, or of something of it. */
export function runPath(name, ...rest) {
  return ["/api/runs", encodeURIComponent(name), ...rest].join("/");
}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  } catch {
    throw new ApiError("the dashboard does not answer");
  }
  let answer = null;
  try {
    answer = await response.json();
  } catch {
    if (response.ok) throw new ApiError("the dashboard's answer cannot be read", response.status);
  }
  if (!response.ok) throw new ApiError(answer?.error ?? `the dashboard says ${response.status}`, response.status);
  return answer;
}
