// The language of the page, and its texts. The choice is kept in the browser.

import { signal } from "@preact/signals";
import { en, type Key } from "./en";
import { spoken, type Part } from "../pure/sentence";
import sentences from "./sentences.zh.json";
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

/** What the server calls by an English title, in the page's language if it is one of ours: faults, plots, results of reconciles. */
export function titled(sort: "fault" | "parameter" | "series" | "result", name: string, english: string): string {
  const key = `${sort}.${name}`;
  return Object.hasOwn(en, key) ? t(key as Key) : english;
}

/** A sentence of the engine in the page's language, of its English text and its parts. */
export function says(english: string, parts: Part | undefined): string {
  return language.value === "zh" && parts !== undefined ? spoken(parts, sentences) : english;
}

export type { Key };
