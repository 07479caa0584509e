"""What the console costs a browser: its first paint on a fresh `konverge up`, its bytes, its memory with many rows.

The figures of time are Chromium's own (its Performance API), each of a fresh cluster and a fresh profile: nothing is
in any cache. The page is opened by the link that signs in once, as people open it. The bars are the console's promises.
"""

from __future__ import annotations

import asyncio
import gzip
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench._apiservers import Running, konverge
from bench._progress import say, turns
from bench._report import OURS, Figure, Report
from bench._workload import each
from konverge.client import Client, load_config
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.objects.meta import ObjectMeta
from tests.real.browser import Browser, Page, a_browser
from tools import real_packages

PAINT, SHOWN, WORK, FIRST, BUNDLE, HEAP, MEMORY = (
    "first contentful paint",
    "the overview is shown",
    "CPU of the page's main thread until then",
    "transferred by the first page",
    "the whole bundle, compressed",
    "JavaScript objects with 10,000 rows",
    "memory of the page's process with them",
)
LIMITS = {PAINT: (1000.0, "ms"), BUNDLE: (400.0, "KB"), MEMORY: (150.0, "MB")}
ROWS = 10_000
WRITERS = 16
STATIC = Path(__file__).parents[1] / "src" / "konverge" / "console" / "static"
TIMES = """(() => {
  const paint = performance.getEntriesByType("paint").find((entry) => entry.name === "first-contentful-paint");
  const loads = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
  const own = loads.filter((entry) => !entry.name.includes("/console/v1/") && !entry.name.includes("/k8s/"));
  return {paint: paint?.startTime, bytes: own.reduce((sum, entry) => sum + entry.encodedBodySize, 0)};
})()"""


@dataclass(frozen=True, slots=True)
class Visit:
    """The first visit of a browser."""

    paint: float
    shown: float
    work: float
    bytes: int


def run(quick: bool) -> Report:
    if real_packages.browser() is None:
        raise SystemExit(real_packages.advice(["chromium-headless-shell"]))
    visits = []
    for _ in turns("console", 3 if quick else 7, ["a fresh cluster, a fresh browser"]):
        with konverge("up") as running:
            visits.append(asyncio.run(_first_visit(running)))
    say(f"console: {ROWS} rows")
    with konverge("up") as running:
        heap, memory = asyncio.run(_memory(running))
    bundle = sum(len(gzip.compress(path.read_bytes(), 9)) for path in STATIC.rglob("*") if path.is_file())
    report = Report("console", f"console: {len(visits)} first visits, each of a fresh cluster by a fresh Chromium")
    report.figures = [
        Figure.of(PAINT, OURS, [visit.paint for visit in visits], "ms"),
        Figure.of(SHOWN, OURS, [visit.shown for visit in visits], "ms"),
        Figure.of(WORK, OURS, [visit.work for visit in visits], "ms"),
        Figure.of(FIRST, OURS, [visit.bytes / 1e3 for visit in visits], "KB"),
        Figure(BUNDLE, OURS, bundle / 1e3, "KB"),
        Figure(HEAP, OURS, heap / 1e6, "MB"),
        Figure(MEMORY, OURS, memory / 1e6, "MB"),
    ]
    for metric, (limit, unit) in LIMITS.items():
        if report.ours(metric).value >= limit:
            report.failures.append(f"{metric}: {report.ours(metric).value:.1f} {unit}, allowed {limit:g}")
    return report


def _link(running: Running) -> str:
    """What `konverge console` prints for this cluster."""
    environment = {**os.environ, "XDG_STATE_HOME": str(running.kubeconfig.parent)}
    command = [sys.executable, "-m", "konverge.cli.main", "console"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0]


@asynccontextmanager
async def _page() -> AsyncIterator[tuple[Browser, Page]]:
    with tempfile.TemporaryDirectory(prefix="konverge-bench-", ignore_cleanup_errors=True) as profile:
        async with a_browser(Path(profile)) as browser:
            yield browser, await Page.open(browser)


async def _first_visit(running: Running) -> Visit:
    """Times are of the wall's clock, since people wait by it: only a quiet machine decides about the bar."""
    link = await asyncio.to_thread(_link, running)
    async with _page() as (_, page):
        await page.do("Performance.enable", timeDomain="threadTicks")
        await page.loaded(link, "document.querySelector('.overview')")
        metrics = (await page.do("Performance.getMetrics"))["metrics"]
        work = next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration") * 1e3
        shown = await page.until("document.querySelector('.overview') && performance.now()")
        times = await page.until(f"{TIMES}.paint && {TIMES}")
        return Visit(times["paint"], shown, work, times["bytes"])


async def _memory(running: Running) -> tuple[float, int]:
    """Of a page with many rows: what is alive of its JavaScript objects, and all that its process has for itself."""

    async with Client.connect(load_config(kubeconfig=running.kubeconfig)) as client:

        async def create(number: int) -> None:
            meta = ObjectMeta(name=f"map-{number:05}", namespace="default", labels={"n": str(number)})
            await client.create(ConfigMap(metadata=meta, data={"a": "b"}))

        await each(range(ROWS), WRITERS, create)
    link = await asyncio.to_thread(_link, running)
    async with _page() as (browser, page):
        await page.loaded(link, "document.querySelector('.overview')")
        await page.run("location.hash = '#/k/-/v1/configmaps?namespace=default'")
        await page.until(f"Number(document.querySelector('.grid [role=table]')?.ariaRowCount) > {ROWS}")
        await page.do("HeapProfiler.collectGarbage")
        usage = await page.do("Runtime.getHeapUsage")
        return float(usage["usedSize"]), await browser.memory()
