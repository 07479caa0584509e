"""The page of an object in the console, in a real browser: YAML with a dry run, actions, hostile content."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from konverge.cli.install_objects import install_definitions
from konverge.client import MergePatch
from konverge.console.operators import PAGES
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.objects.kinds.core_v1 import ConfigMap, Node, ServiceAccount
from konverge.objects.meta import ObjectMeta
from konverge.operators.catalog import find
from tests.real.browser import program
from tests.real.console_pages import (
    EDITOR,
    a_console,
    choose,
    console_errors,
    fill,
    press_button,
    replace_in_editor,
    shows,
    signed_in,
    visit,
)

pytestmark = [pytest.mark.spec("C-22"), pytest.mark.blocking("a browser beside us"), pytest.mark.limit(600)]

SETTINGS = "#/o/-/v1/configmaps/default/settings"
MARKUP = "document.querySelectorAll('main img, main b:not(.labels b), main script').length"
"""Elements that only a text of the cluster could have made."""
WEB = "#/o/apps/v1/deployments/default/web"


@pytest.fixture(autouse=True)
def _browser_is_there() -> None:
    program()


def settings() -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name="settings", namespace="default"), data={"color": "red", "size": "10"})


def web() -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "nginx"}]},
    }
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    meta = {"name": "web", "namespace": "default"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


async def test_yaml_is_edited_checked_by_a_dry_run_and_applied(tmp_path: Path) -> None:
    async with a_console(tmp_path) as (office, browser, url):
        await office.admin.create(settings())
        page = await signed_in(browser, url, office.server.token)
        await visit(page, f"{SETTINGS}?tab=yaml", f"{EDITOR}?.innerText.includes('color: red')")
        assert "managedFields" not in await page.run(f"{EDITOR}.innerText")
        await press_button(page, "Edit")
        await replace_in_editor(page, "red", "blue")
        await page.until(f"{EDITOR}.innerText.includes('color: blue')")
        await page.until(shows("Data contains the configuration data", ".field-help"))  # the schema's help
        await page.run(
            "[...document.querySelectorAll('.bar button')].find((entry) => entry.innerText.startsWith('Check')).click()"
        )
        await page.until("document.querySelector('dialog .difference')")
        difference = await page.text("dialog .difference")
        assert "-   color: red" in difference
        assert "+   color: blue" in difference
        assert (await office.admin.get(ConfigMap, "settings", "default")).data["color"] == "red"  # a dry run only
        await press_button(page, "Apply")
        await page.until("!document.querySelector('dialog')")
        assert (await office.admin.get(ConfigMap, "settings", "default")).data == {"color": "blue", "size": "10"}
        await page.until(f"{EDITOR}.innerText.includes('color: blue')")
        assert console_errors(browser) == []


@pytest.mark.spec("C-23")
async def test_an_object_of_any_kind_is_created_from_yaml_after_a_dry_run(tmp_path: Path) -> None:
    async with a_console(tmp_path) as (office, browser, url):
        page = await signed_in(browser, url, office.server.token)
        await visit(page, "#/k/apps/v1/deployments?namespace=default", "document.querySelector('.page-head a.button')")
        await page.run("document.querySelector('.page-head a.button').click()")
        await page.until(f"{EDITOR}?.innerText.includes('template:')")  # what the schema requires is there
        check = "document.querySelector('.bar button.main').click()"
        await page.run(check)
        await page.until("document.querySelector('[role=alert].problem')")
        assert "name or generateName is required" in await page.text("[role=alert].problem")  # the server's own words
        manifest = (
            "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, "
            "spec: {selector: {matchLabels: {app: web}}, "
            "template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: app}]}}}}"
        )
        await page.run(f"{EDITOR}.focus()")
        await page.run(f"getSelection().selectAllChildren({EDITOR})")
        await page.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        await page.type(manifest)
        await page.run(check)
        await page.until(shows("progressDeadlineSeconds", "dialog .difference"))  # a default of the server
        assert (await office.admin.list(Deployment, "default")).items == []  # a dry run only
        await press_button(page, "Create")
        await page.until("location.hash.startsWith('#/o/apps/v1/deployments/default/web')")
        assert (await office.admin.get(Deployment, "web", "default")).spec.replicas == 1
        # Chromium joins lines that are typed over by a style of its own, which the policy blocks; nothing is lost.
        assert [error for error in console_errors(browser) if "Applying inline style" not in error] == []


async def test_an_edit_of_what_others_changed_meanwhile_is_refused_and_kept(tmp_path: Path) -> None:
    async with a_console(tmp_path) as (office, browser, url):
        await office.admin.create(settings())
        page = await signed_in(browser, url, office.server.token)
        await visit(page, f"{SETTINGS}?tab=yaml", f"{EDITOR}?.innerText.includes('color: red')")
        await press_button(page, "Edit")
        await replace_in_editor(page, "red", "blue")
        await office.admin.patch(ConfigMap, "settings", MergePatch({"data": {"size": "20"}}), "default")
        check = (
            "[...document.querySelectorAll('.bar button')].find((entry) => entry.innerText.startsWith('Check')).click()"
        )
        await page.run(check)
        await page.until(shows("was changed meanwhile"))
        assert "color: blue" in await page.run(f"{EDITOR}.innerText")
        assert (await office.admin.get(ConfigMap, "settings", "default")).data == {"color": "red", "size": "20"}
        await page.until(
            "[...document.querySelectorAll('.bar button')].some((entry) => entry.innerText === 'Load it again')"
        )
        await page.run(
            "[...document.querySelectorAll('.bar button')].find((entry) => entry.innerText === 'Load it again').click()"
        )
        await page.run(check)
        await page.until("document.querySelector('dialog .difference')")
        assert '-   size: "20"' in await page.text("dialog .difference")  # what would be overwritten is seen


@pytest.mark.spec("C-23")
async def test_a_deployment_is_scaled_restarted_and_deleted_with_what_it_owns(tmp_path: Path) -> None:
    async with a_console(tmp_path) as (office, browser, url):
        await office.send("POST", "/k8s/apis/apps/v1/namespaces/default/deployments", web())
        page = await signed_in(browser, url, office.server.token)
        await visit(page, WEB, shows("web", "h1"))
        await press_button(page, "Scale…")
        await page.until("document.querySelector('dialog input')?.value === '2'")
        await fill(page, "Replicas", "5")
        await page.press("Enter")
        await page.until("!document.querySelector('dialog')")
        assert (await office.admin.get(Deployment, "web", "default")).spec.replicas == 5
        await page.until("document.activeElement.innerText === 'Scale…'")  # the focus is given back
        await press_button(page, "Restart…")
        await press_button(page, "Restart")
        await page.until("!document.querySelector('dialog')")
        template = (await office.admin.get(Deployment, "web", "default")).spec.template
        assert "kubectl.kubernetes.io/restartedAt" in template.metadata.annotations
        await press_button(page, "Delete…")
        await page.until("document.querySelector('dialog button.danger[disabled]')")
        await page.press("Escape")
        await page.until("!document.querySelector('dialog')")
        await press_button(page, "Delete…")
        await choose(page, "What it owns", "Foreground")
        await fill(page, "Type web to confirm", "web")
        await page.until("document.querySelector('dialog button.danger:not([disabled])')")
        await page.press("Enter")
        await page.until(shows("It is being deleted."))
        gone = await office.admin.get(Deployment, "web", "default")
        assert "foregroundDeletion" in gone.metadata.finalizers
        assert console_errors(browser) == []


@pytest.mark.spec("C-23")
async def test_a_refused_action_says_so_and_changes_nothing(tmp_path: Path) -> None:
    async with a_console(tmp_path) as (office, browser, url):
        await office.admin.create(settings())
        reader = await office.account("reader", "get", "list", "watch", resources=("configmaps",))
        page = await signed_in(browser, url, reader)
        await visit(page, SETTINGS, shows("settings", "h1"))
        await press_button(page, "Delete…")
        await fill(page, "Type settings to confirm", "settings")
        await page.press("Enter")
        await page.until(shows("cannot delete", "dialog"))
        assert (await office.admin.get(ConfigMap, "settings", "default")).data["color"] == "red"


@pytest.mark.spec("C-23")
async def test_a_node_is_cordoned_and_drained(tmp_path: Path) -> None:
    async with a_console(tmp_path) as (office, browser, url):
        await office.admin.create(Node(metadata=ObjectMeta(name="one")))
        await office.admin.create(ServiceAccount(metadata=ObjectMeta(name="default", namespace="default")))
        for name, owner in (("plain", None), ("daemon", "DaemonSet")):
            owners = (
                [{"apiVersion": "apps/v1", "kind": owner, "name": "d", "uid": "u", "controller": True}] if owner else []
            )
            meta = {"name": name, "namespace": "default", "ownerReferences": owners}
            spec = {"nodeName": "one", "containers": [{"name": "c", "image": "i"}]}
            body = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
            assert (await office.send("POST", "/k8s/api/v1/namespaces/default/pods", body)).status == 201
        page = await signed_in(browser, url, office.server.token)
        await visit(page, "#/o/-/v1/nodes/-/one", shows("one", "h1"))
        await press_button(page, "Cordon")
        await page.until(
            "[...document.querySelectorAll('.actions button')].some((entry) => entry.innerText === 'Uncordon')"
        )
        assert (await office.admin.get(Node, "one")).spec.unschedulable is True
        await press_button(page, "Uncordon")
        await page.until(
            "[...document.querySelectorAll('.actions button')].some((entry) => entry.innerText === 'Cordon')"
        )
        await press_button(page, "Drain…")
        await press_button(page, "Drain")
        await page.until(shows("1 pods were evicted; 1 stay.", ".notice"))
        left = await office.get("/k8s/api/v1/namespaces/default/pods")
        alive = [pod["metadata"]["name"] for pod in left["items"] if "deletionTimestamp" not in pod["metadata"]]
        assert alive == ["daemon"]


@pytest.mark.spec("C-24")
async def test_script_in_an_object_is_text_on_every_page(tmp_path: Path) -> None:
    evil = "<img src=x onerror=\"document.title='owned'\"><b>bold</b>"
    async with a_console(tmp_path) as (office, browser, url):
        made = settings()
        made.data = {"page": evil, "more": "{{constructor.constructor('document.title=1')()}}"}
        made.metadata.annotations = {"note": evil}
        await office.admin.create(made)
        meta = {"name": "event", "namespace": "default"}
        uid = (await office.admin.get(ConfigMap, "settings", "default")).metadata.uid
        about = {"kind": "ConfigMap", "name": "settings", "namespace": "default", "uid": uid}
        event = {"apiVersion": "v1", "kind": "Event", "metadata": meta, "involvedObject": about}
        event |= {"reason": "<script>1</script>", "message": evil, "type": "Warning"}
        assert (await office.send("POST", "/k8s/api/v1/namespaces/default/events", event)).status == 201
        page = await signed_in(browser, url, office.server.token)
        await visit(page, f"{SETTINGS}?tab=yaml", f"{EDITOR}?.innerText.includes('onerror')")
        await visit(page, f"{SETTINGS}?tab=events", shows("onerror"))
        assert evil in await page.text()
        assert "<script>1</script>" in await page.text()
        await visit(page, "#/k/-/v1/events", shows("onerror"))
        for fragment in (f"{SETTINGS}?tab=why", f"{SETTINGS}?tab=tree", SETTINGS, "#/"):
            await visit(page, fragment, "document.querySelector('h1')")
        await visit(
            page,
            "#/o/-/v1/configmaps/default/%3Cimg%20src%3Dx%20onerror%3D%22document.title%3D1%22%3E",
            "document.querySelector('h1')",
        )
        assert "<img" in await page.text("h1")
        assert await page.run(MARKUP) == 0
        assert "owned" not in await page.run("document.title")
        assert console_errors(browser) == []


@pytest.mark.spec("C-24")
@pytest.mark.parametrize("language", ["en", "zh"])
async def test_script_in_a_status_is_text_on_the_operators_page_and_in_every_sentence(
    tmp_path: Path, language: str
) -> None:
    evil = "<img src=x onerror=\"document.title='owned'\">{head}$&"
    async with a_console(tmp_path, pages=PAGES) as (office, browser, url):
        await install_definitions(office.admin, [find("webapp")])
        path = "/k8s/apis/apps.konverge.dev/v1/namespaces/default/webapps"
        app = {"apiVersion": "apps.konverge.dev/v1", "kind": "WebApp", "metadata": {"name": "shop"}}
        assert (await office.send("POST", path, app | {"spec": {"image": "shop:1"}})).status == 201
        ready = {"type": "Ready", "status": "False", "reason": "Bad", "message": evil}
        ready["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        status = {"status": {"message": evil, "observedGeneration": 1, "conditions": [ready]}}
        merge = "application/merge-patch+json"
        assert (await office.send("PATCH", f"{path}/shop/status", status, content_type=merge)).status == 200
        page = await signed_in(browser, url, office.server.token)
        await page.run(f"localStorage.setItem('language', {language!r})")
        await page.loaded(url, "document.querySelector('.overview')")
        await page.until(shows(evil, ".problems"))
        shop = "#/o/apps.konverge.dev/v1/webapps/default/shop"
        await visit(page, "#/p/webapps", shows(evil))
        for fragment in (shop, f"{shop}?tab=why", f"{shop}?tab=tree", f"{shop}?tab=story"):
            await visit(page, fragment, "document.querySelector('h1')?.innerText === 'shop'")
            await page.until(shows(evil))
            assert await page.run(MARKUP) == 0, fragment
        assert "owned" not in await page.run("document.title")
        assert console_errors(browser) == []
