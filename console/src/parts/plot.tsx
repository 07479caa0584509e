// A series of numbers over time, drawn by uPlot with the page's colours.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Series } from "../api/console";
import { language, titled } from "../texts";

export const colour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function Plot({ series }: { series: Series }) {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = series.points[series.points.length - 1]?.[1];
  useEffect(() => {
    const element = host.current!;
    const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
    const made = new uPlot({
      width: Math.max(200, element.clientWidth), height: 130, legend: { show: false }, cursor: { y: false },
      series: [{}, { label: series.name, stroke: colour("--accent"), width: 2, fill: colour("--accent-soft"), points: { show: series.points.length < 40, size: 5 } }],
      axes: [{ ...axis, size: 26, space: 70, values: (_, times) => times.map(clockOf) }, { ...axis, size: 46 }],
    }, dataOf(series), element);
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: Math.max(200, element.clientWidth), height: 130 }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, []);
  useEffect(() => plot.current?.setData(dataOf(series)), [series]);
  return (
    <figure class="plot">
      <figcaption>{titled("series", series.name, series.name)} <strong>{latest ?? "–"}</strong> <span class="quiet">{series.unit}</span></figcaption>
      <div ref={host} aria-hidden="true" />
    </figure>
  );
}

export const clockOf = (seconds: number): string => new Date(seconds * 1000).toLocaleTimeString(language.value, { hour12: false });

const dataOf = (series: Series): uPlot.AlignedData => [series.points.map((point) => point[0]), series.points.map((point) => point[1])];
