// Plots of several lines, each beside a table that says the same. The lines differ by colour and by dashes.

import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import * as api from "../api/console";
import { ApiError } from "../api/http";
import { poll } from "../api/watch";
import { columns, short, summary } from "../pure/load";
import { isDark } from "../state";
import { language, t, type Key } from "../texts";
import { Loading, Problem } from "./basics";
import { clockOf, colour } from "./plot";

const DASHES: number[][] = [[], [6, 3], [2, 2], [8, 3, 2, 3], [], [6, 3], [2, 2]];

export function LoadPlots({ kind }: { kind: string }) {
  const [load, setLoad] = useState<api.Load | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => poll(5000, async (signal) => {
    try {
      setLoad(await api.load(kind, signal));
      setError(null);
    } catch (problem) {
      if (!signal.aborted) setError(problem);
    }
  }), [kind]);
  if (error instanceof ApiError && error.code === 403) return <p class="quiet">{t("load.forbidden")}</p>;
  if (!load) return error ? <Problem error={error} /> : <Loading />;
  const drawn = load.plots.filter((plot) => load.times.length && plot.lines.length);
  return (
    <section aria-label={t("load.plots")} class="load">
      {error ? <Problem error={error} /> : null}
      {drawn.map((plot) => <Lines key={`${plot.name} ${isDark()} ${language.value}`} plot={plot} times={load.times} />)}
      {!drawn.length && load.missing.queue === undefined && <p class="quiet">{t("load.none", { seconds: load.every })}</p>}
      {reasons(load).map((reason) => <p key={reason} class="quiet">{reason}</p>)}
    </section>
  );
}

function reasons(load: api.Load): string[] {
  const texts = Object.entries(load.missing).map(([name, reason]) => t((reason === "elsewhere" ? `load.missing.${name}` : `load.${reason}`) as Key));
  return [...new Set(texts)];
}

const nameOf = (line: api.LoadLine): string => (line.name === "other" ? t("load.other") : line.name);

function Lines({ plot, times }: { plot: api.LoadPlot; times: number[] }) {
  const host = useRef<HTMLDivElement>(null);
  const drawn = useRef<uPlot | null>(null);
  const names = plot.lines.map((line) => line.name).join("\n");
  useEffect(() => {
    const element = host.current!;
    const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
    const made = new uPlot({
      width: Math.max(200, element.clientWidth), height: 180, legend: { show: false }, cursor: { y: false },
      scales: { y: { range: (_, low, high) => [Math.min(0, low), Math.max(1, high)] } },
      series: [{}, ...plot.lines.map((line, index) => ({ label: line.name, stroke: colour(`--line-${index + 1}`), width: 2, dash: DASHES[index], points: { show: times.length < 3 } }))],
      axes: [{ ...axis, size: 26, space: 70, values: (_, shown) => shown.map(clockOf) }, { ...axis, size: 46 }],
    }, columns(times, plot.lines) as uPlot.AlignedData, element);
    drawn.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: Math.max(200, element.clientWidth), height: 180 }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, [names]);
  useEffect(() => drawn.current?.setData(columns(times, plot.lines) as uPlot.AlignedData), [plot, times]);
  const title = t(`load.${plot.name}` as Key);
  return (
    <figure class="plot">
      <figcaption>{title}</figcaption>
      <div ref={host} aria-hidden="true" />
      <table class="plain-table lines" aria-label={title}>
        <thead><tr><th scope="col">{t("load.line")}</th><th scope="col">{t("load.now")}</th><th scope="col">{t("load.most")}</th></tr></thead>
        <tbody>{plot.lines.map((line, index) => {
          const { now, most } = summary(line);
          return <tr key={line.name}><th scope="row"><svg class={`swatch line-${index + 1}`} width="22" height="8" aria-hidden="true"><path d="M0 4H22" stroke-dasharray={DASHES[index].join(" ")} /></svg>{nameOf(line)}</th><td>{short(now)}</td><td>{short(most)}</td></tr>;
        })}</tbody>
      </table>
    </figure>
  );
}
