// Operators' own pages: which one belongs to a kind, and their titles in Chinese where the operator declares these.

import type { OperatorPage } from "../api/console";
import { splitVersion } from "./routes";

/** The page of a kind, whichever of its versions is looked at. */
export function pageOf(pages: readonly OperatorPage[], kind: { group: string; resource: string }): OperatorPage | undefined {
  return pages.find((page) => page.resource === kind.resource && splitVersion(page.apiVersion).group === kind.group);
}

/** The same page with all that people read of it (titles, confirmations, what is said of nothing) in Chinese; what has no Chinese stays. */
export function inChinese(page: OperatorPage): OperatorPage {
  const table = page.chinese ?? {};
  const chinese = (text: string): string => (Object.hasOwn(table, text) ? table[text] : text);
  const said = <T extends { title?: string }>(part: T): T => (part.title !== undefined ? { ...part, title: chinese(part.title) } : part);
  return {
    ...said(page),
    columns: page.columns.map(said),
    cards: page.cards.map((card) => ({
      ...said(card), ...(card.columns ? { columns: card.columns.map(said) } : {}), ...(card.empty ? { empty: chinese(card.empty) } : {}),
    })),
    actions: page.actions.map((action) => ({
      ...said(action), ...(action.form ? { form: action.form.map(said) } : {}),
      ...(action.confirm ? { confirm: chinese(action.confirm) } : {}),
    })),
  };
}
