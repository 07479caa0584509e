"""A newcomer in the console: why each of six broken samples is not ready, the tree, the story and the simulation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from konverge.client import MergePatch
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.sim.cluster import Cluster
from tests.explain.samples import create, deployment
from tests.real.browser import a_browser, program
from tests.real.console_clusters import CAUSES, six_broken_samples, storied
from tests.real.console_pages import console_errors, press_button, shows, signed_in, violations, visit

pytestmark = [pytest.mark.spec("C-22"), pytest.mark.blocking("a browser beside us"), pytest.mark.limit(600)]

IN_CHINESE = (
    "StatefulSet db 在等待 Pod db-0，后者在等待持久卷申领 data-db-0，其存储类 `fast` 不存在",
    "后者反复崩溃：容器 api 以退出码 3 退出",
    "其 Secret `web-settings` 不存在",
    "Job report 在等待：其 ResourceQuota `small` 将被超出：请求 requests.cpu=2",
    "Pod train 无法放到 3 个节点中的任何一个：3 个节点的标签不符合其要求",
    "无权在命名空间 default 中 create deployments.apps",
)
WEB = "#/o/apps/v1/deployments/default/web"


@pytest.fixture(autouse=True)
def _browser_is_there() -> None:
    program()


@pytest.mark.spec("C-08")
async def test_a_newcomer_finds_each_of_six_causes_with_one_click(tmp_path: Path) -> None:
    async with six_broken_samples() as (office, url), a_browser(tmp_path) as browser:
        page = await signed_in(browser, url, office.server.token)
        await page.until("document.querySelectorAll('.problems .card').length >= 6")
        for sentence in CAUSES.values():  # as its state is just then: what crashes in a loop runs now and then
            await page.until(shows(sentence, ".problems"))
        assert await violations(page) == []
        marks = await page.run("[...document.querySelectorAll('.problems .card')].map((card) => card.classList[1])")
        assert marks == sorted(marks)  # broken before waiting
        for what, sentence in CAUSES.items():
            await visit(page, "#/", "document.querySelectorAll('.problems .card').length >= 6")
            link = (
                "[...document.querySelectorAll('.problems .sentence a')].find((link) => "
                f"link.innerText.startsWith({json.dumps(what)}))"
            )
            await page.run(f"{link}.focus()")
            await page.press("Enter")
            await page.until(shows(sentence, ".verdict"))
        assert "What to do" in await page.text()
        await visit(page, "#/o/apps/v1/statefulsets/default/db?tab=why", shows("fast", ".links .cause"))
        await page.run("document.querySelector('.links .cause a').click()")
        await page.until("location.hash.includes('storageclasses') && location.hash.includes('fast')")
        await page.until(shows("It does not exist."))  # that is the cause
        await visit(
            page, "#/o/apps/v1/statefulsets/default/db?tab=tree", "document.querySelectorAll('.node').length >= 4"
        )
        assert await page.run("document.querySelectorAll('.node.waiting').length") > 0
        assert await page.run("document.querySelectorAll('.node .mark.gone, .node .mark.broken').length") > 0
        assert await violations(page) == []
        assert console_errors(browser) == []


@pytest.mark.spec("C-37")
async def test_the_causes_the_tree_and_the_story_are_said_in_chinese(tmp_path: Path) -> None:
    async with six_broken_samples() as (office, url), a_browser(tmp_path) as browser:
        page = await signed_in(browser, url, office.server.token)
        await page.until("document.querySelectorAll('.problems .card').length >= 6")
        await page.run("[...document.querySelectorAll('header button')].find((b) => b.innerText === '中文').click()")
        await page.until(shows("总览", "h1"))
        for sentence in IN_CHINESE:
            await page.until(shows(sentence, ".problems"))
        cards = await page.text(".problems")
        for english in (" waits", "which", "whose", "does not exist", "create the", "allows it"):
            assert english not in cards
        assert await violations(page) == []
        db = "#/o/apps/v1/statefulsets/default/db"
        await visit(page, f"{db}?tab=why", shows("其存储类 `fast` 不存在", ".verdict"))
        assert "等待其持久卷申领被绑定：data-db-0" in await page.text(".links")
        assert "创建存储类 fast，或更正引用处的名称" in await page.text(".advice-box")
        await visit(page, f"{db}?tab=tree", "document.querySelectorAll('.node').length >= 4")
        assert "等待其持久卷申领被绑定：data-db-0" in await page.text(".graph")
        titles = await page.run("[...document.querySelectorAll('.node')].map((node) => node.title)")
        assert "等待中: 持久卷申领 data-db-0 在等待：其存储类 `fast` 不存在" in titles
        await visit(page, f"{db}?tab=story", "document.querySelectorAll('.entry').length > 1")
        assert "创建了" in await page.text(".timeline")
        assert await violations(page) == []
        assert console_errors(browser) == []


@pytest.mark.spec("C-09")
async def test_the_story_shows_a_write_as_it_comes_and_the_past_of_the_tree(tmp_path: Path) -> None:
    async with Cluster(nodes=1) as cluster, storied(cluster) as (office, url), a_browser(tmp_path) as browser:
        await create(cluster.client, deployment("web", replicas=1))
        await cluster.settle()
        page = await signed_in(browser, url, office.server.token)
        await visit(page, f"{WEB}?tab=story", "document.querySelectorAll('.entry').length > 2")
        written = await cluster.client.patch(Deployment, "web", MergePatch({"spec": {"replicas": 3}}), "default")
        await page.until(
            "[...document.querySelectorAll('.entry .changes tr')].some((row) => "
            "row.innerText.includes('replicas') && row.querySelector('del')?.innerText === '1' "
            "&& row.querySelector('ins')?.innerText === '3')"
        )
        await page.until("Boolean(document.querySelector('.plot canvas'))")
        await cluster.settle()
        await visit(page, f"{WEB}?tab=tree", "document.querySelectorAll('.node').length >= 5")
        pods = "[...document.querySelectorAll('.node-kind')].filter((kind) => kind.innerText === 'Pod').length"
        await page.until(f"{pods} === 3")
        await page.tab_to("element.matches('input[type=range]')")
        move = (
            "(document.activeElement.value = {}, "
            "document.activeElement.dispatchEvent(new Event('input', {{bubbles: true}})))"
        )
        await page.run(move.format(int(written.metadata.resource_version) - 1))
        await page.until(f"{pods} === 1")  # as it was just before
        await page.run(move.format(1))
        await page.until(f"document.querySelector('.problem') && {pods} === 0")  # before there was anything
        await press_button(page, "Now")
        await page.until(f"{pods} === 3")
        assert console_errors(browser) == []


@pytest.mark.spec("C-12", "C-41")
async def test_a_node_is_lost_and_a_recording_becomes_a_test(tmp_path: Path) -> None:
    async with Cluster(nodes=2) as cluster, storied(cluster) as (office, url), a_browser(tmp_path) as browser:
        page = await signed_in(browser, url, office.server.token)
        await visit(page, "#/simulation", "document.querySelectorAll('.faults form').length > 3")
        assert await violations(page) == []
        await page.run("document.querySelector('main').focus()")
        await browser.do("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
        await press_button(page, "Copy")
        await page.until(shows("Copied: 0", ".notice"))
        assert await page.run("navigator.clipboard.readText()") == "0"
        await press_button(page, "Start recording")
        await page.until(shows("Stop recording"))
        lose = "document.querySelector('form[aria-label=\"Lose a node\"] button')"
        await page.run(f"{lose}.focus()")
        await page.press("Enter")
        await page.until(shows("done.", ".notice"))
        state = await office.get("/console/v1/simulation")
        assert [node["lost"] for node in state["nodes"]] == [True, False]
        await page.run(
            "[...document.querySelectorAll('.bar button')].find((b) => b.innerText === 'Stop recording').click()"
        )
        await page.until(shows("Start recording"))
        await page.until(
            "![...document.querySelectorAll('.bar button')].find((b) => b.innerText === 'Show the test').disabled"
        )
        await page.run(
            "[...document.querySelectorAll('.bar button')].find((b) => b.innerText === 'Show the test').click()"
        )
        await page.until(shows("def test_", "dialog pre"))
        assert "node-1" in await page.text("dialog pre")
        assert "seed=0" in await page.text("dialog pre")
        assert console_errors(browser) == []
