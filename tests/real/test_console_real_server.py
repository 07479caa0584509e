"""`konverge console --context` in front of the real kube-apiserver with its controllers, in a real browser.

Each test serves the console anew, since its link signs in once; the cluster is one for all, so each has a namespace.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.real.browser import Browser, Page, a_browser, program
from tests.real.clusters import real_on_real
from tests.real.console_pages import (
    EDITOR,
    SIGN_IN,
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
from tests.real.embedded import Tool, konverge_process

pytestmark = [pytest.mark.spec("C-33"), pytest.mark.blocking("a browser beside us"), pytest.mark.limit(600)]

ROWS = "[...document.querySelectorAll('.grid-body a')].map((link) => link.innerText)"
LIVE = "document.querySelector('.connection.live')"
CHECK = "[...document.querySelectorAll('.bar button')].find((entry) => entry.innerText.startsWith('Check')).click()"
ROOM = {"requests": {"cpu": "100m"}}


@pytest.fixture(scope="module")
def kubectl_of_real(binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tool]:
    """A whole cluster of the real programs, with two nodes of kwok; and kubectl, for what others do meanwhile."""
    program()
    folder = tmp_path_factory.mktemp("real")
    with real_on_real(binaries, folder) as kubeconfig:
        yield Tool(binaries / "kubectl", kubeconfig, folder)


@pytest.fixture
def space(kubectl_of_real: Tool, request: pytest.FixtureRequest) -> Tool:
    """kubectl in a namespace of this test."""
    name = request.node.name.removeprefix("test_").replace("_", "-")[:40].strip("-")
    kubectl_of_real("create", "namespace", name)
    return Tool(kubectl_of_real.program, kubectl_of_real.kubeconfig, kubectl_of_real.home, name)


@asynccontextmanager
async def the_console(kubectl: Tool, profile: Path) -> AsyncIterator[tuple[Page, Browser, str]]:
    """The page that the link of `konverge console` opens."""
    options = ("--kubeconfig", str(kubectl.kubeconfig), "--context", "real")
    with konverge_process("console", *options) as line:
        link = line.strip()
        async with a_browser(profile) as browser:
            page = await Page.open(browser)
            await page.do(
                "Emulation.setDeviceMetricsOverride", width=1280, height=800, deviceScaleFactor=1, mobile=False
            )
            await page.loaded(link, "document.querySelector('.overview')")
            yield page, browser, link.partition("/#")[0]


def deployment(name: str, replicas: int = 2, **pod: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "nginx:1", "resources": ROOM}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **pod}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def database(storage_class: str) -> dict[str, Any]:
    """A StatefulSet whose claims ask for a storage class."""
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    made = deployment("db", 1)
    made["kind"] = "StatefulSet"
    made["spec"] |= {"serviceName": "db", "volumeClaimTemplates": [claim]}
    return made


async def outside(kubectl: Tool, *arguments: str, stdin: str = "") -> str:
    """What somebody else does meanwhile."""
    return await asyncio.to_thread(kubectl, *arguments, stdin=stdin)


async def read(kubectl: Tool, *arguments: str) -> Any:
    return json.loads(await outside(kubectl, "get", *arguments, "-o", "json"))


async def create(kubectl: Tool, *objects: dict[str, Any]) -> None:
    for made in objects:
        await outside(kubectl, "create", "-f", "-", stdin=json.dumps(made))


def address(kubectl: Tool, kind: str, name: str, tab: str = "") -> str:
    return f"#/o/{kind}/{kubectl.namespace}/{name}" + (f"?tab={tab}" if tab else "")


async def test_lists_and_trees_of_a_real_cluster_are_live(space: Tool, tmp_path: Path) -> None:
    await create(space, deployment("web"))
    async with the_console(space, tmp_path) as (page, browser, _):
        assert "real" in await page.text("header .cluster")
        await page.until(shows("Namespace", ".kinds"))
        assert await violations(page) == []
        await visit(page, f"#/k/-/v1/configmaps?namespace={space.namespace}", LIVE)
        await page.until(f"({ROWS}).join() === 'kube-root-ca.crt'")  # a controller's own
        await outside(space, "create", "configmap", "made-outside")
        await page.until(f"({ROWS}).includes('made-outside')")
        await outside(space, "delete", "configmap", "made-outside")
        await page.until(f"!({ROWS}).includes('made-outside')")
        assert await violations(page) == []
        await visit(page, address(space, "apps/v1/deployments", "web", "tree"), "document.querySelector('.node')")
        kinds = "[...document.querySelectorAll('.node-kind')].map((kind) => kind.innerText)"
        await page.until(f"({kinds}).filter((kind) => kind === 'Pod').length === 2")
        await page.until("document.querySelectorAll('.node .mark.ok').length >= 4")  # kwok runs them by now
        await outside(space, "scale", "deployment", "web", "--replicas=3")
        await page.until(f"({kinds}).filter((kind) => kind === 'Pod').length === 3")
        assert {"Deployment", "ReplicaSet"} <= set(await page.run(kinds))
        assert await violations(page) == []
        assert console_errors(browser) == []


async def test_why_finds_what_real_controllers_wait_for(space: Tool, tmp_path: Path) -> None:
    await create(space, database("fast"), deployment("picky", 1, nodeSelector={"disk": "ssd"}))
    for made in ("statefulset/db", "deployment/picky"):  # the quota is for what comes after them
        await outside(space, "wait", "--for=jsonpath={.status.replicas}=1", made, "--timeout=120s")
    await outside(space, "create", "quota", "small", "--hard=requests.cpu=200m")
    counted = r"--for=jsonpath={.status.used.requests\.cpu}=200m"  # before that nothing is refused
    await outside(space, "wait", counted, "quota/small", "--timeout=120s")
    await create(space, deployment("big", 3))
    causes = {
        ("apps/v1/statefulsets", "db"): "storage class `fast` does not exist",
        ("apps/v1/deployments", "picky"): "fits on none of 2 nodes",
        ("apps/v1/deployments", "big"): "ResourceQuota `small`",
    }
    async with the_console(space, tmp_path) as (page, browser, _):
        for cause in causes.values():
            await page.until(shows(cause, ".problems"))
        assert await violations(page) == []
        for (kind, name), cause in causes.items():
            await visit(page, address(space, kind, name, "why"), shows(cause, ".verdict"))
        assert await violations(page) == []
        await visit(page, address(space, "apps/v1/statefulsets", "db", "why"), shows("fast", ".links .cause"))
        await page.run("document.querySelector('.links .cause a').click()")
        await page.until("location.hash.includes('storageclasses')")
        assert console_errors(browser) == []


async def test_yaml_is_checked_and_applied_and_a_conflict_is_told(space: Tool, tmp_path: Path) -> None:
    await outside(space, "create", "configmap", "settings", "--from-literal=color=red")
    async with the_console(space, tmp_path) as (page, browser, _):
        await visit(
            page, address(space, "-/v1/configmaps", "settings", "yaml"), f"{EDITOR}?.innerText.includes('color: red')"
        )
        await press_button(page, "Edit")
        await replace_in_editor(page, "red", "blue")
        await page.until(f"{EDITOR}.innerText.includes('color: blue')")
        await outside(
            space, "patch", "configmap", "settings", "--patch", '{"data": {"size": "20"}}'
        )  # another is faster
        await page.run(CHECK)
        await page.until(shows("was changed meanwhile"))
        await page.until("[...document.querySelectorAll('.bar button')].some((b) => b.innerText === 'Load it again')")
        assert "color: blue" in await page.run(f"{EDITOR}.innerText")
        await page.run(
            "[...document.querySelectorAll('.bar button')].find((b) => b.innerText === 'Load it again').click()"
        )
        await page.run(CHECK)
        await page.until("document.querySelector('dialog .difference')")
        difference = await page.text("dialog .difference")
        assert "-   color: red" in difference
        assert "+   color: blue" in difference
        assert '-   size: "20"' in difference  # what the other wrote, and would be lost, is seen
        assert (await read(space, "configmap", "settings"))["data"]["color"] == "red"  # a dry run only
        assert await violations(page) == []
        await press_button(page, "Apply")
        await page.until("!document.querySelector('dialog')")
        assert (await read(space, "configmap", "settings"))["data"] == {"color": "blue"}
        assert console_errors(browser) == []


async def test_a_story_and_the_actions_of_a_deployment(space: Tool, tmp_path: Path) -> None:
    await create(space, deployment("web", 1), deployment("still", 1))
    web, still = (address(space, "apps/v1/deployments", name) for name in ("web", "still"))
    async with the_console(space, tmp_path) as (page, browser, _):
        await visit(page, web, shows("web", "h1"))
        await press_button(page, "Scale…")
        await page.until("document.querySelector('dialog input')?.value === '1'")
        await fill(page, "Replicas", "2")
        await page.press("Enter")
        await page.until("!document.querySelector('dialog')")
        assert (await read(space, "deployment", "web"))["spec"]["replicas"] == 2
        # of what is written again, as a ReplicaSet that is scaled, the managed fields forget who created it
        await visit(page, f"{still}?tab=story", shows("by kube-controller-manager"))
        await page.until(shows("kubectl-create created Deployment still (by its managed fields: Update)"))
        await page.until(shows("kube-controller-manager created ReplicaSet still-"))
        await page.until(shows("ScalingReplicaSet: Scaled up replica set"))  # an event
        assert await violations(page) == []
        await visit(page, web, shows("web", "h1"))
        await press_button(page, "Delete…")
        await choose(page, "What it owns", "Foreground")
        await fill(page, "Type web to confirm", "web")
        await page.until("document.querySelector('dialog button.danger:not([disabled])')")
        await page.press("Enter")
        await page.until(shows("This object is gone."))  # after what it owned: the garbage collector saw to it
        left = (await read(space, "deployments,replicasets"))["items"]
        assert not [each for each in left if each["metadata"]["name"].startswith("web")]
        assert console_errors(browser) == []


@pytest.mark.spec("C-34")
async def test_one_who_may_read_one_namespace_sees_that_and_nothing_more(space: Tool, tmp_path: Path) -> None:
    await create(space, deployment("web", 1))
    await outside(space, "create", "serviceaccount", "reader")
    await outside(
        space, "create", "rolebinding", "reader", "--clusterrole=view", f"--serviceaccount={space.namespace}:reader"
    )
    token = await outside(space, "create", "token", "reader")
    may_read = ("auth", "can-i", "list", "deployments", f"--as=system:serviceaccount:{space.namespace}:reader")
    await asyncio.to_thread(space.until, bool, *may_read)  # the server learns of roles, and what they aggregate, later
    async with the_console(space, tmp_path) as (admin, browser, url):
        await admin.run("document.querySelector('#out').click()")
        await admin.until(SIGN_IN)
        page = await signed_in(browser, url, token)
        await page.until("document.querySelector('.overview')")
        assert "system:serviceaccount" in await page.run("document.querySelector('.who').title")
        texts = [await page.text()]
        assert await violations(page) == []
        await visit(page, "#/k/apps/v1/deployments", shows("enter one above"))
        await fill(page, "Namespace", space.namespace)
        await page.press("Enter")
        await page.until(f"({ROWS}).join() === 'web'")
        for tab, condition in {
            "": "document.querySelector('.summary')",
            "tree": "document.querySelectorAll('.node').length >= 3",
            "why": "document.querySelector('.verdict')",
            "story": "document.querySelector('.entry')",
            "yaml": f"{EDITOR}?.innerText.includes('nginx:1')",
            "events": shows("ScalingReplicaSet"),
        }.items():
            await visit(page, address(space, "apps/v1/deployments", "web", tab), condition)
            texts.append(await page.text())
            assert await page.run("document.querySelectorAll('main .problem').length") == 0, tab
        assert await violations(page) == []
        await visit(page, "#/k/-/v1/configmaps?namespace=kube-system", "document.querySelector('main .problem')")
        assert "cannot list" in await page.text("main .problem")  # the server's own words
        texts.append(await page.text(".grid-body") if await page.run("!!document.querySelector('.grid-body')") else "")
        await visit(page, address(space, "apps/v1/deployments", "web"), shows("web", "h1"))
        await press_button(page, "Delete…")
        await fill(page, "Type web to confirm", "web")
        await page.press("Enter")
        await page.until(shows("cannot delete", "dialog"))
        assert (await read(space, "deployment", "web"))["metadata"]["name"] == "web"
        assert not [text for text in texts if "kube-apiserver" in text or "extension-apiserver" in text]
        assert console_errors(browser) == []


@pytest.mark.spec("C-28")
async def test_the_requests_of_a_real_api_server_are_plotted(space: Tool, tmp_path: Path) -> None:
    async with the_console(space, tmp_path) as (page, browser, _):
        await visit(page, "#/load", shows("cannot be seen from here"))
        rows = "[...document.querySelectorAll('.load tbody th')].map((cell) => cell.innerText)"
        await page.until(f"{rows}.includes('get') && {rows}.includes('update')")
        await page.until("document.querySelectorAll('.load canvas').length === 1")
        assert await violations(page) == []
        assert console_errors(browser) == []
