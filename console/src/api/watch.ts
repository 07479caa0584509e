// A list that stays true: list, watch, resume where it stopped; 410 lists again; a hidden tab lets go of its connection.
// Browsers allow six connections to one host, for all tabs together: a tab that is not seen must not hold one.

import { applied, Expired, listed, NO_ROWS, type Rows, type Table, type WatchEvent } from "../pure/rows";
import { ApiError, get, lines, send, withQuery } from "./http";

const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const PAGE = 1000;
const FIRST_WAIT = 500;
const LONGEST_WAIT = 15000;

export type Connection = "loading" | "live" | "waiting" | "paused";

export interface Listener {
  rows(state: Rows): void;
  connection(state: Connection): void;
  /** A refusal that a retry does not change. */
  refused(error: ApiError): void;
}

/** Follow a collection as a Table until the returned function is called. */
export function followTable(path: string, parameters: Record<string, string>, listener: Listener): () => void {
  const ending = new AbortController();
  run(path, parameters, listener, ending.signal).catch((error: unknown) => {
    if (!ending.signal.aborted) throw error;
  });
  return () => ending.abort();
}

async function run(path: string, parameters: Record<string, string>, listener: Listener, ending: AbortSignal): Promise<void> {
  let state: Rows = NO_ROWS;
  let wait = FIRST_WAIT;
  while (!ending.aborted) {
    await visible(ending, () => listener.connection("paused"));
    if (ending.aborted) return;
    const pause = new AbortController();
    const stop = whenHidden(() => pause.abort());
    const either = AbortSignal.any([ending, pause.signal]);
    try {
      if (!state.version) {
        listener.connection("loading");
        state = await list(path, parameters, either);
        listener.rows(state);
      }
      await watch(path, parameters, state, either, (next) => {
        state = next;
        wait = FIRST_WAIT;
      }, listener);
      await sleep(FIRST_WAIT, either); // servers end watches now and then; one that ends all at once is not asked in a storm
    } catch (error) {
      if (ending.aborted) return;
      if (error instanceof Expired || (error instanceof ApiError && error.code === 410)) state = { ...state, version: "" };
      else if (error instanceof ApiError && error.code >= 400 && error.code < 500 && error.code !== 429) return listener.refused(error);
      else if (!pause.signal.aborted) {
        listener.connection("waiting");
        await sleep(wait, ending);
        wait = Math.min(wait * 2, LONGEST_WAIT);
      }
    } finally {
      stop();
    }
  }
}

async function list(path: string, parameters: Record<string, string>, ending: AbortSignal): Promise<Rows> {
  const pages: Table[] = [];
  let next = "";
  do {
    const page: Table = await get<Table>(withQuery(path, { ...parameters, limit: PAGE, continue: next }), { accept: TABLE, signal: ending });
    pages.push(slim(page));
    next = page.metadata?.continue ?? "";
  } while (next);
  return listed(pages);
}

function slim(page: Table): Table {
  for (const row of page.rows ?? []) {
    if (row.object?.metadata) delete row.object.metadata.managedFields;
  }
  return page;
}

async function watch(
  path: string, parameters: Record<string, string>, from: Rows, ending: AbortSignal, keep: (state: Rows) => void, listener: Listener,
): Promise<void> {
  const address = withQuery(path, { ...parameters, watch: 1, allowWatchBookmarks: true, resourceVersion: from.version });
  const response = await send(address, { accept: TABLE, signal: ending });
  listener.connection("live");
  let state = from;
  let scheduled = false;
  const draw = () => {
    scheduled = false;
    listener.rows(state);
  };
  for await (const line of lines(response)) {
    if (!line) continue;
    state = applied(state, JSON.parse(line) as WatchEvent);
    keep(state);
    if (!scheduled) {
      scheduled = true;
      setTimeout(draw, 100); // a storm of events is drawn ten times a second
    }
  }
}

function whenHidden(action: () => void): () => void {
  const look = () => { if (document.hidden) action(); };
  document.addEventListener("visibilitychange", look);
  return () => document.removeEventListener("visibilitychange", look);
}

function visible(ending: AbortSignal, paused: () => void): Promise<void> {
  if (!document.hidden || ending.aborted) return Promise.resolve();
  paused();
  return new Promise((resolve) => {
    const done = () => {
      if (document.hidden && !ending.aborted) return;
      document.removeEventListener("visibilitychange", done);
      ending.removeEventListener("abort", done);
      resolve();
    };
    document.addEventListener("visibilitychange", done);
    ending.addEventListener("abort", done);
  });
}

export function sleep(milliseconds: number, ending: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(finish, milliseconds);
    function finish() {
      clearTimeout(timer);
      ending.removeEventListener("abort", finish);
      resolve();
    }
    ending.addEventListener("abort", finish);
  });
}

/** Call `action` now and every few seconds while the tab is visible. Returns the function that ends it. */
export function poll(milliseconds: number, action: (signal: AbortSignal) => Promise<void>): () => void {
  const ending = new AbortController();
  const loop = async () => {
    while (!ending.signal.aborted) {
      await visible(ending.signal, () => undefined);
      if (ending.signal.aborted) return;
      await action(ending.signal).catch((error: unknown) => {
        if (!ending.signal.aborted && !(error instanceof ApiError)) throw error;
      });
      await sleep(milliseconds, ending.signal);
    }
  };
  void loop();
  return () => ending.abort();
}
