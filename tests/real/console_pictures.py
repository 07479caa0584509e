"""Pictures of the console for the documents: a browser looks at the six broken samples, at a healthy Deployment, at an
operator with work, and at a Nacos on a Chinese page.

python -m tests.real.console_pictures docs/console          # all of them
python -m tests.real.console_pictures docs/console chinese  # those of one function
"""

from __future__ import annotations

import asyncio
import base64
import sys
import tempfile
from pathlib import Path

from konverge.sim.cluster import Cluster
from tests.explain.samples import create, deployment
from tests.real.browser import Page, a_browser
from tests.real.console_clusters import CAUSES, a_halted_nacos, busy, six_broken_samples, storied
from tests.real.console_pages import shows, signed_in, visit

ADDRESSES = {
    "StatefulSet db": "#/o/apps/v1/statefulsets/default/db",
    "Deployment api": "#/o/apps/v1/deployments/default/api",
    "Deployment web": "#/o/apps/v1/deployments/default/web",
    "Job report": "#/o/batch/v1/jobs/default/report",
    "pod train": "#/o/-/v1/pods/default/train",
    "WebApp shop": "#/o/apps.konverge.dev/v1/webapps/default/shop",
}


NACOS = "#/o/nacos.io/v1beta1/nacos/default/mq"


async def take(page: Page, path: Path) -> None:
    reply = await page.do("Page.captureScreenshot", format="webp", quality=70)
    path.write_bytes(base64.b64decode(reply["data"]))


async def broken(folder: Path, profile: Path) -> None:
    async with six_broken_samples() as (office, url), a_browser(profile) as browser:
        page = await signed_in(browser, url, office.server.token)
        await page.until("document.querySelectorAll('.problems .card').length >= 6")
        await take(page, folder / "overview.webp")
        for name, address in ADDRESSES.items():
            await visit(page, f"{address}?tab=why", shows(CAUSES[name], ".verdict"))
            await take(page, folder / f"why-{name.split()[1]}.webp")
        tree = f"{ADDRESSES['StatefulSet db']}?tab=tree"
        await visit(page, tree, "document.querySelectorAll('.node').length >= 4")
        await take(page, folder / "tree.webp")


async def healthy(folder: Path, profile: Path) -> None:
    async with Cluster(nodes=3) as cluster, storied(cluster) as (office, url), a_browser(profile) as browser:
        await create(cluster.client, deployment("web", replicas=3))
        await cluster.settle()
        page = await signed_in(browser, url, office.server.token, dark=True)
        await visit(page, "#/o/apps/v1/deployments/default/web?tab=story", "document.querySelector('.plot canvas')")
        await take(page, folder / "story.webp")
        await visit(page, "#/simulation", "document.querySelector('.faults form')")
        await take(page, folder / "simulation.webp")


async def loaded(folder: Path, profile: Path) -> None:
    async with busy(24, every=1.0) as (office, url), a_browser(profile) as browser:
        page = await signed_in(browser, url, office.server.token)
        await visit(page, "#/load", "document.querySelectorAll('.load canvas').length === 3")
        await take(page, folder / "load.webp")


async def chinese(folder: Path, profile: Path) -> None:
    """A Nacos whose upgrade is halted, on its Chinese page. Needs a Chinese font, such as fonts-wqy-microhei."""
    async with a_halted_nacos() as (office, url), a_browser(profile) as browser:
        page = await signed_in(browser, url, office.server.token)
        await page.run("[...document.querySelectorAll('button')].find((b) => b.innerText === '中文').click()")
        await visit(page, NACOS, shows("BackupMissing", "section[aria-label='升级']"))
        await page.do("Emulation.setDeviceMetricsOverride", width=1280, height=1060, deviceScaleFactor=1, mobile=False)
        await page.until(shows("停在步骤 Preflight"))
        await take(page, folder / "nacos.zh.webp")


async def main(folder: Path, names: list[str]) -> None:
    """All pictures, or those of these functions."""
    folder.mkdir(parents=True, exist_ok=True)
    for pictures in (broken, healthy, loaded, chinese):
        if names and pictures.__name__ not in names:
            continue
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
            await pictures(folder, Path(profile))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2:]))
