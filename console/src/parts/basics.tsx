// Small parts that all pages use: a status with its shape, ages that stay true, refusals, notices.

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ApiError } from "../api/http";
import type { Health } from "../pure/health";
import { age, fullTime } from "../pure/times";
import { language, setLanguage, t, type Key } from "../texts";

/** The shape says the same as the colour: a disc, a triangle, a square with a cross, a ring, a ring with a question. */
export function Mark({ health, size = 12 }: { health: Health; size?: number }) {
  return (
    <svg class={`mark ${health}`} width={size} height={size} viewBox="0 0 12 12" aria-hidden="true">
      {health === "ok" && <circle cx="6" cy="6" r="5" />}
      {health === "waiting" && <path d="M6 0.8 11.6 11H0.4Z" />}
      {health === "broken" && <><rect x="0.7" y="0.7" width="10.6" height="10.6" rx="2" /><path class="hole" d="M3.8 3.8l4.4 4.4M8.2 3.8 3.8 8.2" /></>}
      {health === "asleep" && <path d="M7.2 1A5 5 0 1 0 11 7.6 4 4 0 0 1 7.2 1Z" />}
      {health === "gone" && <circle class="ring" cx="6" cy="6" r="4.4" stroke-dasharray="2.2 1.6" />}
      {health === "unknown" && <circle class="ring" cx="6" cy="6" r="4.4" />}
    </svg>
  );
}

export const healthText = (health: Health): string => t(`health.${health}` as Key);

export function Status({ health, children }: { health: Health; children?: ComponentChildren }) {
  return <span class={`status ${health}`}><Mark health={health} />{children ?? healthText(health)}</span>;
}

const now = signal(Date.now());

/** Seconds by which the cluster's clock was moved: ages are those that the cluster would say. */
export const ahead = signal(0);
setInterval(() => { if (!document.hidden) now.value = Date.now(); }, 1000);

export function Age({ from }: { from?: string | null }) {
  if (!from) return null;
  return <time dateTime={from} title={fullTime(from, language.value)}>{age(from, now.value + ahead.value * 1000)}</time>;
}

export function Problem({ error, retry }: { error: unknown; retry?: () => void }) {
  if (!error) return null;
  const causes = error instanceof ApiError ? error.causes : [];
  return (
    <div class="problem" role="alert">
      <strong>{t("app.failed")}</strong>
      <p>{error instanceof Error ? error.message : String(error)}</p>
      {causes.length > 1 && <ul>{causes.map((cause) => <li><code>{cause.field}</code> {cause.message}</li>)}</ul>}
      {retry && <button type="button" onClick={retry}>{t("app.retry")}</button>}
    </div>
  );
}

export function Loading() {
  return <p class="quiet loading" aria-busy="true">{t("app.loading")}</p>;
}

export function LanguageButton() {
  const other = language.value === "en" ? "zh" : "en";
  return <button type="button" class="plain" lang={other === "zh" ? "zh-CN" : "en"} onClick={() => setLanguage(other)}>{t("app.language")}</button>;
}

/** An address that leads nowhere, and the way back. */
export function Missing() {
  return <><h1>{t("app.missing")}</h1><p><a href="#/">{t("app.toOverview")}</a></p></>;
}

/** A short notice that goes away by itself; screen readers say it. */
export const notice = signal("");
let noticeTimer = 0;
export function notify(text: string): void {
  notice.value = text;
  clearTimeout(noticeTimer);
  noticeTimer = window.setTimeout(() => { notice.value = ""; }, 6000);
}

/** The result of a request that is made when `key` changes. */
export function useAnswer<T>(ask: () => Promise<T>, key: unknown): { value: T | null; error: unknown; again: () => void } {
  const [state, setState] = useState<{ value: T | null; error: unknown }>({ value: null, error: null });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let over = false;
    setState((old) => (turn ? old : { value: null, error: null }));
    ask().then((value) => { if (!over) setState({ value, error: null }); }, (error) => { if (!over) setState({ value: null, error }); });
    return () => { over = true; };
  }, [key, turn]);
  return { ...state, again: () => setTurn((count) => count + 1) };
}

export function Pairs({ items }: { items: [string, ComponentChildren][] }) {
  const given = items.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return <dl class="pairs">{given.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>;
}

export function save(name: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
