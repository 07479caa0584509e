// A table that draws only the rows that can be seen: ten thousand objects cost as much as forty.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { t } from "../texts";
import { Mark, healthText } from "./basics";
import type { Health } from "../pure/health";

export interface GridColumn<R> {
  id: string;
  title: string;
  description?: string;
  width: string;
  cell: (row: R) => ComponentChildren;
  /** Shown on narrow screens. */
  narrow?: boolean;
  /** Of the width of a narrow screen, beside the shares of others; 1 unless told. */
  share?: number;
  numeric?: boolean;
}

interface Props<R> {
  label: string;
  columns: GridColumn<R>[];
  rows: R[];
  keyOf: (row: R) => string;
  href: (row: R) => string;
  health: (row: R) => Health | null;
  sort: { id: string; descending: boolean };
  sortBy: (id: string) => void;
  empty: string;
}

export const ROW = 34;
const SPARE = 8;

export function Grid<R>(props: Props<R>) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 800 });
  const [chosen, setChosen] = useState(0);
  const wantsFocus = useRef(false);
  const active = Math.min(chosen, Math.max(0, props.rows.length - 1));

  useLayoutEffect(() => {
    const element = box.current!;
    const measure = () => setView({ top: element.scrollTop, height: element.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => { // at once: the row that had the focus may be gone from the page
    if (!wantsFocus.current) return;
    wantsFocus.current = false;
    box.current?.querySelector<HTMLElement>(`a[data-row="${active}"]`)?.focus({ preventScroll: true });
  });

  const first = Math.max(0, Math.floor(view.top / ROW) - SPARE);
  const last = Math.min(props.rows.length, Math.ceil((view.top + view.height) / ROW) + SPARE);
  const go = (index: number) => {
    const next = Math.max(0, Math.min(props.rows.length - 1, index));
    const element = box.current!;
    const head = ROW;
    if (next * ROW < element.scrollTop) element.scrollTop = next * ROW;
    else if ((next + 1) * ROW + head > element.scrollTop + element.clientHeight) element.scrollTop = (next + 1) * ROW + head - element.clientHeight;
    wantsFocus.current = true;
    setView({ top: element.scrollTop, height: element.clientHeight });
    setChosen(next);
  };
  const keys = (event: KeyboardEvent) => {
    if (!(event.target as HTMLElement).closest("[data-row]")) return;
    const page = Math.max(1, Math.floor(view.height / ROW) - 2);
    const steps: Record<string, number> = {
      ArrowDown: active + 1, ArrowUp: active - 1, j: active + 1, k: active - 1, PageDown: active + page, PageUp: active - page, Home: 0, End: props.rows.length - 1,
    };
    if (!(event.key in steps) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    go(steps[event.key]);
  };
  // The row that Tab leads to stays in the page even when it was scrolled away: the focus must not get lost.
  const indexes = Array.from({ length: Math.max(0, last - first) }, (_, offset) => first + offset);
  if (props.rows.length && (active < first || active >= last)) indexes.push(active);

  const template = {
    "--wide": props.columns.map((column) => column.width).join(" "),
    "--narrow": props.columns.filter((column) => column.narrow).map((column) => `minmax(0, ${column.share ?? 1}fr)`).join(" "),
  };
  return (
    <div class="grid" ref={box} onScroll={() => setView({ top: box.current!.scrollTop, height: box.current!.clientHeight })} onKeyDown={keys}>
      <div role="table" aria-label={props.label} aria-rowcount={props.rows.length + 1} class="grid-table">
        <div role="rowgroup" class="grid-head"><div role="row" aria-rowindex={1} class="grid-row" style={template}>
          {props.columns.map((column) => (
            <div role="columnheader" key={column.id} class={column.narrow ? "" : "roomy"} title={column.description}
              aria-sort={props.sort.id !== column.id ? undefined : props.sort.descending ? "descending" : "ascending"}>
              <button type="button" class="sort" aria-label={t("table.sort", { name: column.title })} onClick={() => props.sortBy(column.id)}>
                {column.title}<span aria-hidden="true">{props.sort.id === column.id ? (props.sort.descending ? " ↓" : " ↑") : ""}</span>
              </button>
            </div>
          ))}
        </div></div>
        <div role="rowgroup" class="grid-body" style={{ height: `${props.rows.length * ROW}px` }}>
          {indexes.map((index) => {
            const row = props.rows[index];
            const health = props.health(row);
            return (
              <div role="row" key={props.keyOf(row)} aria-rowindex={index + 2} class="grid-row" style={{ ...template, top: `${index * ROW}px` }}
                onClick={(event) => { if (!(event.target as HTMLElement).closest("a,button") && !String(getSelection())) location.hash = props.href(row); }}>
                {props.columns.map((column, place) => (
                  <div role="cell" key={column.id} class={`${column.narrow ? "" : "roomy"}${column.numeric ? " numeric" : ""}`}>
                    {place === 0 ? (
                      <>
                        {health ? <><Mark health={health} /><span class="unseen">{healthText(health)}</span></> : <span class="no-mark" />}
                        <a href={props.href(row)} data-row={index} tabIndex={index === active ? 0 : -1} onFocus={() => setChosen(index)}>{column.cell(row)}</a>
                      </>
                    ) : column.cell(row)}
                  </div>
                ))}
              </div>
            );
          })}
        </div>
      </div>
      {!props.rows.length && <p class="quiet empty">{props.empty}</p>}
    </div>
  );
}
