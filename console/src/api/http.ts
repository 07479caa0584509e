// Requests to the one origin that serves this page, with its session cookie. Refusals become `ApiError`.

import { signal } from "@preact/signals";

export interface StatusCause { field?: string; message?: string; reason?: string }

export class ApiError extends Error {
  constructor(readonly code: number, message: string, readonly reason = "", readonly causes: StatusCause[] = []) {
    super(message);
  }
}

/** Whether the last request reached the server: `false` shows the banner. */
export const reachable = signal(true);
/** Whether the session is over: `true` shows the sign-in page, in the place of the page that asked. */
export const signedOut = signal(false);

const WRITES = new Set(["POST", "PUT", "PATCH", "DELETE"]);

export interface Options {
  method?: string;
  body?: unknown;
  /** A body that is sent as it is, with this media type. */
  text?: { type: string; content: string };
  accept?: string;
  signal?: AbortSignal;
}

/** One request; the answer is read by the caller. Throws ApiError, and AbortError when the signal says so. */
export async function send(path: string, options: Options = {}): Promise<Response> {
  const method = options.method ?? "GET";
  const headers: Record<string, string> = { accept: options.accept ?? "application/json" };
  if (WRITES.has(method)) headers["x-konverge-console"] = "1";
  let body: string | undefined;
  if (options.text) {
    headers["content-type"] = options.text.type;
    body = options.text.content;
  } else if (options.body !== undefined) {
    headers["content-type"] = "application/json";
    body = JSON.stringify(options.body);
  }
  let response: Response;
  try {
    response = await fetch(path, { method, headers, body, signal: options.signal, cache: "no-store", credentials: "same-origin" });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    reachable.value = false;
    throw new ApiError(0, "The server cannot be reached.", "Unreachable");
  }
  if (response.ok) {
    reachable.value = true;
    return response;
  }
  const refusal = await refusalOf(response);
  if (refusal.code === 401) signedOut.value = true;
  if (![502, 503, 504].includes(refusal.code)) reachable.value = true;
  else if (refusal.reason === "Unreachable" || refusal.code !== 503) reachable.value = false;
  throw refusal;
}

async function refusalOf(response: Response): Promise<ApiError> {
  const body = await response.json().catch(() => null);
  const fallback = `${response.status} ${response.statusText}`;
  if (body === null || typeof body !== "object") return new ApiError(response.status, fallback);
  const causes = body.details?.causes ?? [];
  return new ApiError(response.status, body.error ?? body.message ?? body.detail ?? fallback, body.reason ?? "", Array.isArray(causes) ? causes : []);
}

export async function get<T>(path: string, options: Options = {}): Promise<T> {
  return (await send(path, options)).json() as Promise<T>;
}

/** An address with parameters; empty ones are left out. */
export function withQuery(path: string, parameters: Record<string, string | number | boolean | null | undefined>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== null && value !== "" && value !== false) query.set(name, String(value));
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

/** The lines of a streamed answer, as they come. */
export async function* lines(response: Response): AsyncGenerator<string> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    while (true) {
      const { done, value } = await reader.read();
      if (done) break;
      const pieces = (rest + value).split("\n");
      rest = pieces.pop()!;
      yield* pieces;
    }
    if (rest) yield rest;
  } finally {
    reader.cancel().catch(() => undefined);
  }
}
