// Requests to the service with the caller's token, and streams that resume where they stopped.
// The token is kept for this tab only. It is sent in a header and never in an address.

const KEY = "token";
let onSignedOut = () => {};

export const session = {
  get token() { return sessionStorage.getItem(KEY) || ""; },
  begin(token) { sessionStorage.setItem(KEY, token); },
  end() { sessionStorage.clear(); },
  whenOver(listener) { onSignedOut = listener; },
};

export class Problem extends Error {
  constructor(details) {
    super(details.detail || details.title);
    this.details = details;
  }
}

export function path(namespace, name = "", rest = "") {
  const space = namespace ? `/namespaces/${encodeURIComponent(namespace)}` : "";
  return `${space}/instances${name ? `/${encodeURIComponent(name)}` : ""}${rest}`;
}

export async function call(method, where, body, headers = {}) {
  const response = await send(method, `/api/v1${where}`, body, headers);
  if (response.status === 204) return null;
  const isJson = (response.headers.get("content-type") || "").includes("json");
  return isJson ? response.json() : response.text();
}

// The token that the code of a link stands for.
export async function exchange(code) {
  const response = await send("POST", "/sign-in", { code });
  return (await response.json()).token;
}

async function send(method, where, body, headers = {}, signal = undefined) {
  const sent = { authorization: `Bearer ${session.token}`, ...headers };
  if (body !== undefined) sent["content-type"] = "application/json";
  let response;
  try {
    response = await fetch(where, { method, headers: sent, body: body === undefined ? undefined : JSON.stringify(body), signal, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem({ title: "No answer", detail: "The service cannot be reached.", status: 0 });
  }
  if (response.ok) return response;
  const details = await response.json().catch(() => ({ title: response.statusText, status: response.status }));
  if (response.status === 401) onSignedOut(details);
  throw new Problem(details);
}

const FIRST_WAIT = 1000;
const LONGEST_WAIT = 30000;

// Calls listener.all(map) with all instances at first and after every change, listener.state(text) with the state of the
// connection, and listener.problem(details) when a retry is pointless. Returns the function that ends the watch.
export function watch(where, listener) {
  const ending = new AbortController();
  follow(where, listener, ending.signal).catch((error) => {
    if (error.name !== "AbortError") throw error;
  });
  return () => ending.abort();
}

async function follow(where, listener, signal) {
  const stream = { known: new Map(), fresh: null, id: "", listener };
  let wait = FIRST_WAIT;
  while (!signal.aborted) {
    listener.state("connecting");
    try {
      const headers = stream.id ? { "last-event-id": stream.id } : {};
      const response = await send("GET", `/api/v1/watch${where}`, undefined, headers, signal);
      stream.fresh = stream.id ? null : new Map();
      listener.state("live");
      wait = FIRST_WAIT;
      await read(response.body, (event) => apply(stream, event), signal);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem && isFinal(error.details.status)) {
        listener.problem(error.details);
        return;
      }
      listener.state("waiting");
      wait = Math.min(wait * 2, LONGEST_WAIT);
    }
    await sleep(wait, signal);
  }
}

function isFinal(status) {
  return status >= 400 && status < 500 && status !== 429;
}

function apply(stream, event) {
  if (event.name === "problem") throw new Problem(event.data);
  if (event.name === "reset") {
    stream.id = "";
    stream.fresh = new Map();
    return;
  }
  const key = event.data.uid;
  if (event.name === "synced") {
    stream.known = stream.fresh || stream.known;
    stream.fresh = null;
  } else if (event.name === "deleted") {
    stream.known.delete(key);
  } else if (event.name === "added" || event.name === "modified") {
    (stream.fresh || stream.known).set(key, event.data);
  }
  if (event.id) stream.id = event.id;
  if (!stream.fresh) stream.listener.all(stream.known);
}

async function read(body, listener, signal) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  while (!signal.aborted) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const event = parse(block);
      if (event) listener(event);
    }
  }
}

function parse(block) {
  const fields = {};
  for (const line of block.split("\n")) {
    const colon = line.indexOf(": ");
    if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 2);
  }
  if (fields.data === undefined && fields.id === undefined) return null;
  return { name: fields.event || "bookmark", data: fields.data ? JSON.parse(fields.data) : {}, id: fields.id || "" };
}

function sleep(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
  });
}
