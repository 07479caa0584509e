// The language of the page, and its texts. The choice is kept in the browser.

import { signal } from "@preact/signals";
import { en, type Key } from "./en";
import { zh } from "./zh";

export type Language = "en" | "zh";

const TABLES: Record<Language, Record<Key, string>> = { en, zh };

function first(): Language {
  const kept = localStorage.getItem("language");
  if (kept === "en" || kept === "zh") return kept;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

export const language = signal<Language>(first());

export function setLanguage(chosen: Language): void {
  localStorage.setItem("language", chosen);
  language.value = chosen;
  document.documentElement.lang = chosen === "zh" ? "zh-CN" : "en";
}

/** A text in the page's language; `{name}` is replaced by the value of that name. */
export function t(key: Key, values: Record<string, string | number> = {}): string {
  return TABLES[language.value][key].replace(/\{(\w+)\}/g, (whole, name: string) => (name in values ? String(values[name]) : whole));
}

export type { Key };
