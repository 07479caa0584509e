// What the whole page shares: where we are, who we are, which namespace, light or dark.

import { computed, signal } from "@preact/signals";
import * as api from "./api/console";
import { discover } from "./api/kinds";
import { signedOut } from "./api/http";
import { poll } from "./api/watch";
import { inChinese } from "./pure/pages";
import { parseRoute } from "./pure/routes";
import { language } from "./texts";

export const hash = signal(location.hash);
export const route = computed(() => parseRoute(hash.value));
export const session = signal<api.Session | null>(null);
const declaredPages = signal<api.OperatorPage[]>([]);
/** In the page's language. */
export const operatorPages = computed(() => (language.value === "zh" ? declaredPages.value.map(inChinese) : declaredPages.value));
export const started = signal(false);
export const startError = signal<unknown>(null);

window.addEventListener("hashchange", () => { hash.value = location.hash; });

/** Change the address without a step in the history: for what is typed, and for tabs. */
export function replaceAddress(address: string): void {
  history.replaceState(null, "", address);
  hash.value = address;
}

export type Theme = "light" | "dark" | "";
const kept = localStorage.getItem("theme");
export const theme = signal<Theme>(kept === "light" || kept === "dark" ? kept : "");

export function isDark(): boolean {
  return theme.value ? theme.value === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

export function applyTheme(): void {
  if (theme.value) document.documentElement.dataset.theme = theme.value;
  else delete document.documentElement.dataset.theme;
}

export function toggleTheme(): void {
  theme.value = isDark() ? "light" : "dark";
  localStorage.setItem("theme", theme.value);
  applyTheme();
}

/** Ask who we are, and what there is. After a 401 the sign-in page shows; the address stays. */
export async function start(): Promise<void> {
  startError.value = null;
  try {
    session.value = await api.session();
    signedOut.value = false;
    await Promise.all([
      discover(),
      api.pages().then((pages) => { declaredPages.value = pages; }, () => undefined),
    ]);
    started.value = true;
  } catch (error) {
    if (!signedOut.value) startError.value = error;
  }
}

/** Operators under development are started again with other code, and other pages, while somebody looks. */
export function followPages(): () => void {
  return poll(5000, async (signal) => {
    const pages = await api.pages(signal);
    if (JSON.stringify(pages) === JSON.stringify(declaredPages.value)) return;
    await discover();
    declaredPages.value = pages;
  });
}

export async function signIn(given: { token: string } | { code: string }): Promise<void> {
  await api.signIn(given);
  signedOut.value = false;
  await start();
}

export async function signOut(): Promise<void> {
  await api.signOut().catch(() => undefined);
  session.value = null;
  started.value = false;
  signedOut.value = true;
}
