"""A Nacos cluster from its form to its end, by keyboard alone, on `konverge up` in a real browser."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from konverge.cli.install_objects import install_definitions
from konverge.client import MergePatch
from konverge.console.operators import PAGES
from konverge.objects import crd
from konverge.objects.meta import ObjectMeta
from konverge.operators.catalog import find
from konverge.operators.nacos.resource import Nacos
from tests.real.browser import Page, a_browser, program
from tests.real.console_pages import (
    EDITOR,
    a_console,
    addresses,
    choose,
    console_errors,
    fill,
    press_button,
    replace_in_editor,
    shows,
    signed_in,
    violations,
    visit,
)

pytestmark = [pytest.mark.spec("N-23"), pytest.mark.blocking("a browser beside us"), pytest.mark.limit(600)]

NAMES = (
    "fetch('/k8s/apis/nacos.io/v1beta1/nacos').then((answer) => answer.json())"
    ".then((list) => list.items.map((item) => item.metadata.name))"
)
SHOP = "#/o/nacos.io/v1alpha1/nacos/default/shop"


@pytest.fixture(autouse=True)
def _browser_is_there() -> None:
    program()


@asynccontextmanager
async def up(*options: str) -> AsyncIterator[dict[str, Any]]:
    """`konverge up`, and what it says about itself."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "konverge.cli.main", "up", "--output", "json", *options),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        yield json.loads(await process.stdout.readline())
    finally:
        process.terminate()
        await process.wait()


async def test_a_cluster_is_created_watched_scaled_and_deleted_by_keyboard_alone(tmp_path: Path) -> None:
    async with up("--operators", "nacos", "--no-samples") as places, a_browser(tmp_path) as browser:
        page = await Page.open(browser)
        await page.loaded(places["console_link"], "document.querySelector('#out')")
        assert await page.run("location.href") == places["console"] + "/#/"  # the code has left the address
        await page.until("document.querySelector('nav a[href=\"#/p/nacos\"]')")
        await page.tab_to("element.innerText === 'Nacos'")
        await page.press("Enter")
        await page.until(shows("There is nothing of this kind yet."))
        await page.run("document.querySelector('main').focus()")  # as the skip link does
        await page.tab_to("element.innerText === 'Create'")
        await page.press("Enter")
        await page.until("document.querySelectorAll('main select option').length > 9")
        await fill(page, "Name", "shop")
        await choose(page, "Type", "cluster")
        await fill(page, "Volume size", "10Gi")
        await press_button(page, "Create")
        await page.until(f"location.hash === {json.dumps(SHOP)}")
        await page.until(shows("3 / 3"))
        await page.until("document.querySelector('.page-head .status.ok')")
        roles = (
            "document.querySelector('table[aria-label=Members]')?.innerText.match(/leader|follower/g)?.sort().join()"
        )
        await page.until(f"{roles} === 'follower,follower,leader'")
        assert await page.run("document.querySelectorAll('table[aria-label=Members] tbody tr').length") == 3
        await page.run("document.querySelector('main').focus()")
        await press_button(page, "Scale…")
        await fill(page, "Replicas", "5")
        await page.press("Enter")
        await page.until(shows("5 / 5"))
        await page.run("document.querySelector('#tab-summary').focus()")
        await page.do("Input.dispatchKeyEvent", type="keyDown", key="End", code="End", windowsVirtualKeyCode=35)
        await page.until("document.querySelectorAll('table[aria-label=Events] tbody tr').length > 0")
        await visit(page, f"{SHOP}?tab=tree", "document.querySelectorAll('.node').length > 8")
        assert "StatefulSet" in await page.text(".graph")
        await page.run("document.querySelector('main').focus()")
        await press_button(page, "Delete…")
        await page.until("document.querySelector('dialog button.danger[disabled]')")
        await fill(page, "Type shop to confirm", "shop")
        await page.until("document.querySelector('dialog button.danger:not([disabled])')")
        await page.press("Enter")
        await page.until(shows("This object is gone."))
        await visit(page, "#/p/nacos", shows("There is nothing of this kind yet."))
        assert console_errors(browser) == []
        assert addresses(browser) == {places["console"].removeprefix("http://")}


async def test_a_nacos_is_checked_and_created_from_the_table_by_the_form_and_as_yaml_in_both_versions(
    tmp_path: Path,
) -> None:
    async with up("--operators", "nacos", "--no-samples") as places, a_browser(tmp_path) as browser:
        page = await Page.open(browser)
        await page.loaded(places["console_link"], "document.querySelector('#out')")
        await visit(page, "#/k/nacos.io/v1beta1/nacos", shows("nacos.io/v1beta1", "h1"))
        await page.run("document.querySelector('.page-head a.main').click()")
        await page.until("location.hash === '#/create/nacos'")
        await page.until("document.querySelectorAll('main select option').length > 9")
        await page.run("document.querySelector('main').focus()")
        await fill(page, "Name", "shop")
        await press_button(page, "Check it…")
        await page.until(shows("kind: Nacos", "dialog"))
        proposal = await page.text("dialog")
        assert "name: shop" in proposal
        assert "type: standalone" in proposal  # with what the server adds
        await page.press("Escape")
        await page.until("!document.querySelector('dialog')")
        assert "shop" not in await page.run(NAMES)  # it was a dry run
        await page.run("document.querySelector('main').focus()")
        await press_button(page, "Create")
        await page.until(f"location.hash === {json.dumps(SHOP)}")
        for version, space in (("v1beta1", "default"), ("v1alpha1", "kube-public")):
            await visit(page, "#/new/nacos.io/v1beta1/nacos", f"{EDITOR}?.innerText.includes('nacos.io/v1beta1')")
            await page.run(f"{EDITOR}.focus()")
            if version == "v1alpha1":
                await replace_in_editor(page, "v1beta1", version)
                await replace_in_editor(page, "default", space)
            await page.run(
                "[...document.querySelectorAll('.bar button')].find((b) => b.innerText === 'Check it…').click()"
            )
            await page.until("document.querySelector('dialog .difference')")
            await page.run("document.querySelector('dialog button.main').click()")
            await page.until(f"location.hash.endsWith('/nacos/{space}/nacos')")
            await page.until(shows("nacos", "h1"))
        assert sorted(await page.run(NAMES)) == ["nacos", "nacos", "shop"]
        assert console_errors(browser) == []


async def test_the_form_shows_each_error_at_its_field(tmp_path: Path) -> None:
    async with a_console(tmp_path, pages=PAGES) as (office, browser, url):
        await install_definitions(office.admin, [find("nacos")])
        page = await signed_in(browser, url, office.server.token)
        await visit(page, "#/create/nacos", "document.querySelectorAll('main select option').length > 9")
        await page.run("document.querySelector('main').focus()")
        await fill(page, "Name", "shop")
        await choose(page, "Type", "cluster")
        await fill(page, "Servers", "2")
        await choose(page, "Database", "mysql")
        await press_button(page, "Create")
        await page.until("document.querySelectorAll('.wrong').length === 3")
        wrong = await page.run("[...document.querySelectorAll('[aria-invalid=true]')].map((element) => element.id)")
        assert wrong == ["nacos-replicas", "nacos-host", "nacos-secret"]
        await page.until("document.activeElement.id === 'nacos-replicas'")
        described = "document.getElementById(document.activeElement.getAttribute('aria-describedby')).innerText"
        assert "at least 3 replicas" in await page.run(described)
        await fill(page, "Servers", "3")
        await fill(page, "Host", "mysql.default.svc")
        await fill(page, "Secret with username and password", "db")
        await press_button(page, "Create")
        await page.until(f"location.hash === {json.dumps(SHOP)}")
        made = await office.admin.get(Nacos, "shop", "default")
        assert (made.spec.replicas, made.spec.database.mysql_host) == (3, "mysql.default.svc")
        assert console_errors(browser) == []


HOSTILE = "<img src=x onerror=\"document.title='broken in'\">"


def judged(groups: list[dict[str, Any]], upgrade: dict[str, Any] | None) -> dict[str, Any]:
    """The status of a Nacos as an operator writes it."""
    return {"phase": "Running", "readyReplicas": 3, "leader": "shop-0", "raftGroups": groups, "upgrade": upgrade}


@pytest.mark.spec("C-24", "C-25", "C-36", "C-39", "C-40")
async def test_raft_groups_and_an_upgrade_whatever_their_names_are(tmp_path: Path) -> None:
    many = [{"name": f"group-{number:03}", "leader": "shop-0", "term": 1, "agreed": True} for number in range(97)]
    odd = [
        {"name": HOSTILE, "leader": HOSTILE, "term": 2**53, "peers": 3, "message": HOSTILE},
        {"name": "\u202egnol" + "x" * 500, "term": 4, "peers": 3, "message": "has no leader (term 4) " * 20},
        {"name": "naming", "leader": "shop-1", "term": 7, "peers": 3, "agreed": True},
    ]
    halted = {"from": "2.4.3", "to": "3.0.3", "step": "Preflight", "halted": "BackupMissing", "message": HOSTILE}
    rows = "document.querySelectorAll('table[aria-label=\"Raft groups\"] tbody tr').length"
    async with a_console(tmp_path, pages=PAGES) as (office, browser, url):
        await office.admin.create(crd(Nacos))  # as from an operator of before: only the stored version
        await office.admin.create(Nacos(metadata=ObjectMeta(name="shop", namespace="default")))

        async def say(status: dict[str, Any] | None) -> None:
            patch = MergePatch({"status": status})
            await office.admin.patch(Nacos, "shop", patch, "default", subresource="status")

        page = await signed_in(browser, url, office.server.token)
        await visit(page, SHOP, shows("No raft group is known"))
        assert "The servers were not given another version yet." in await page.text("main")
        await say(judged([*odd, *many], halted))
        await page.until(f"{rows} === 100")
        table = await page.text('table[aria-label="Raft groups"]')
        assert HOSTILE in table
        assert (table.count("✗"), table.count("✓")) == (2, 98)
        upgrade = await page.text('section[aria-label="Upgrade"]')
        assert all(text in upgrade for text in ("2.4.3", "3.0.3", "Preflight", "BackupMissing", HOSTILE))
        assert "Backup\n" not in upgrade, "what there is not is left out"
        assert await violations(page) == []
        await page.do("Emulation.setDeviceMetricsOverride", width=360, height=740, deviceScaleFactor=1, mobile=True)
        await page.until("document.documentElement.scrollWidth <= 360")
        assert await violations(page) == []
        await press_button(page, "中文")
        await page.until(shows("Raft 组") + " && " + shows("停止原因"))
        assert await page.run("document.title") != "broken in"
        await page.until("document.documentElement.scrollWidth <= 360")
        await say(judged([], None))
        await page.until(shows("没有已知的 Raft 组") + " && " + shows("服务器尚未更换过版本。"))
        assert console_errors(browser) == []
