// Tabs as the ARIA practices have them: arrows move, the chosen one is the only stop of the Tab key.

import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";

export interface Tab { id: string; title: string; mark?: ComponentChildren }

export function Tabs({ label, tabs, chosen, choose }: { label: string; tabs: Tab[]; chosen: string; choose: (id: string) => void }) {
  const list = useRef<HTMLDivElement>(null);
  const move = (event: KeyboardEvent) => {
    const index = tabs.findIndex((tab) => tab.id === chosen);
    const steps: Record<string, number> = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: tabs.length - 1 };
    if (!(event.key in steps)) return;
    event.preventDefault();
    const next = tabs[(steps[event.key] + tabs.length) % tabs.length];
    choose(next.id);
    list.current?.querySelector<HTMLElement>(`#tab-${next.id}`)?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label={label} ref={list} onKeyDown={move}>
      {tabs.map((tab) => (
        <button key={tab.id} type="button" role="tab" id={`tab-${tab.id}`} aria-selected={tab.id === chosen} aria-controls="panel"
          tabIndex={tab.id === chosen ? 0 : -1} onClick={() => choose(tab.id)}>{tab.mark}{tab.title}</button>
      ))}
    </div>
  );
}
