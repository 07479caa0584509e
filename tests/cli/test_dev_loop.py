"""The loop of `--watch`: files that are saved, code that is loaded beside the running one."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.cli import background
from konverge.cli.console_pages import pages_of
from konverge.cli.dev_loop import DevLoop, Workbench, at_work
from konverge.cli.exit import UsageError
from konverge.cli.main import main
from konverge.cli.operator_process import NotLoaded, OperatorProcess, files_of_code, is_own_code
from konverge.cli.watched_files import LOOK_EVERY, WatchedFiles
from konverge.client import Client, NotFound, Static
from konverge.console import Console, Page
from konverge.objects.kinds.core_v1 import ConfigMap

SETTINGS = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: %s}\n"
OPERATOR = """
from konverge import Controller, CustomResource, Manager, Model, Reconciler

class Spec(Model):
    size: int = 1

class Note(CustomResource[Spec, Model], group="docs.example.com", version="v1"):
    "A note."

class Notes(Reconciler[Note]):
    async def reconcile(self, ctx):
        return None

manager = Manager(name="notes").add(Controller(Note, Notes()))
"""


def touch(path: Path, text: str, moment: int) -> None:
    path.write_text(text)
    os.utime(path, ns=(moment, moment))


@pytest.mark.virtual
@pytest.mark.spec("O-23")
async def test_a_save_is_reported_once_when_the_files_are_at_rest(tmp_path: Path) -> None:
    touch(tmp_path / "a", "1", 1)
    touch(tmp_path / "b", "1", 1)
    files = await WatchedFiles.of(lambda: sorted(tmp_path.iterdir()))
    waiting = asyncio.create_task(files.saved())
    await asyncio.sleep(10)
    assert not waiting.done()
    for moment in range(2, 6):  # an editor writes in steps
        touch(tmp_path / "a", "half", moment)
        await asyncio.sleep(LOOK_EVERY)
        assert not waiting.done()
    assert await waiting == {tmp_path / "a"}
    waiting = asyncio.create_task(files.saved())
    await asyncio.sleep(10)
    assert not waiting.done()
    (tmp_path / "b").unlink()
    touch(tmp_path / "c", "", 1)
    assert await waiting == {tmp_path / "b", tmp_path / "c"}


@pytest.mark.virtual
@pytest.mark.spec("O-23")
async def test_a_file_that_is_replaced_under_the_same_time_and_size_is_seen(tmp_path: Path) -> None:
    touch(tmp_path / "a", "1", 1)
    files = await WatchedFiles.of(lambda: [tmp_path / "a"])
    touch(tmp_path / "new", "2", 1)
    (tmp_path / "new").replace(tmp_path / "a")
    assert await files.saved() == {tmp_path / "a"}


async def settings(client: Client) -> dict[str, str]:
    return dict((await client.get(ConfigMap, "settings", "default")).data or {})


def bench(client: Client, folder: Path, said: list[str]) -> Workbench:
    def follow(resources: Any, shown: bool) -> None:
        said.extend(f"follow {resource.kind} {shown}" for resource in resources)

    return Workbench(
        client=client,
        kubeconfig=folder / "kubeconfig",
        manifests=[str(folder / "app.yaml")],
        stdin="",
        references=[],
        say=said.append,
        follow=follow,
    )


def loop(client: Client, folder: Path, said: list[str]) -> DevLoop:
    return DevLoop(bench(client, folder, said), watch=True)


@pytest.mark.virtual
@pytest.mark.spec("O-23")
async def test_saving_a_manifest_applies_it_and_a_bad_one_changes_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    file = tmp_path / "app.yaml"
    async with ApiServer() as server, Client(server.transport, credentials=Static.bearer(server.token)) as client:
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}
        await client.apply(space, field_manager="test")
        touch(file, SETTINGS % "b", 1)
        working = loop(client, tmp_path, said)
        await working.apply()
        assert await settings(client) == {"a": "b"}
        assert said == ["applied: created configmap/settings", "follow ConfigMap False"]
        following = asyncio.create_task(working.follow_manifests())
        await asyncio.sleep(1)
        for moment, text in enumerate((SETTINGS % "c", "a: [", SETTINGS % "[5]", SETTINGS % "d"), 2):
            touch(file, text, moment)
            await asyncio.sleep(5)
            assert (await settings(client))["a"] == ("d" if moment == 5 else "c")
        following.cancel()
    errors = [line for line in said if line.startswith("error: ")]
    assert len(errors) == 2
    assert "line 2" in errors[0]
    assert "ConfigMap settings" in errors[1]


@pytest.mark.virtual
@pytest.mark.spec("O-23")
async def test_no_saved_manifest_ends_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    file = tmp_path / "app.yaml"
    async with ApiServer() as server, Client(server.transport, credentials=Static.bearer(server.token)) as client:
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}
        await client.apply(space, field_manager="test")
        touch(file, SETTINGS % "b", 1)
        working = loop(client, tmp_path, said)
        await working.apply()
        following = asyncio.create_task(working.follow_manifests())
        await asyncio.sleep(1)
        head = "apiVersion: v1\nkind: ConfigMap\nmetadata: "
        bad = (f"{head}{{name: settings, namespace: [x]}}\n", f"{head}&a {{name: settings, labels: *a}}\n", "kind: 3\n")
        for moment, text in enumerate(bad, 2):
            touch(file, text, moment)
            await asyncio.sleep(5)
            assert said[-1].startswith("error: "), text
        with monkeypatch.context() as broken:  # a mistake of ours is no reason to lose a cluster either
            broken.setattr("konverge.cli.applied_manifests._placed", lambda *args, **more: {}["defect"])
            touch(file, SETTINGS % "c", 10)
            await asyncio.sleep(5)
        assert said[-1].startswith("error: KeyError")
        touch(file, SETTINGS % "d", 11)
        await asyncio.sleep(5)
        assert await settings(client) == {"a": "d"}
        following.cancel()


@pytest.mark.virtual
@pytest.mark.spec("O-23")
async def test_only_with_watch_is_removed_what_is_no_longer_in_the_files(tmp_path: Path) -> None:
    async with ApiServer() as server, Client(server.transport, credentials=Static.bearer(server.token)) as client:
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}
        await client.apply(space, field_manager="test")
        touch(tmp_path / "app.yaml", SETTINGS % "b", 1)
        async with at_work(bench(client, tmp_path, []), watch=False):
            pass
        touch(tmp_path / "app.yaml", (SETTINGS % "b").replace("settings", "others"), 2)
        async with at_work(bench(client, tmp_path, []), watch=False):
            assert await settings(client) == {"a": "b"}
        async with at_work(bench(client, tmp_path, []), watch=True):
            with pytest.raises(NotFound):
                await settings(client)


@pytest.mark.virtual
@pytest.mark.spec("O-23")
async def test_a_module_that_is_away_for_a_while_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    touch(tmp_path / "shop.py", "1", 1)
    files = await WatchedFiles.of(lambda: files_of_code("shop:manager"))
    (tmp_path / "shop.py").rename(tmp_path / "away")
    waiting = asyncio.create_task(files.saved())
    await asyncio.sleep(5)
    assert waiting.done()
    waiting = asyncio.create_task(files.saved())
    await asyncio.sleep(5)
    (tmp_path / "away").rename(tmp_path / "shop.py")
    assert {path.name for path in await waiting} >= {"shop.py"}


@pytest.mark.spec("O-23")
async def test_files_are_looked_at_beside_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("konverge.cli.watched_files.LOOK_EVERY", 0.001)
    threads: list[int] = []

    def listed() -> list[Path]:
        threads.append(threading.get_ident())
        return [tmp_path / "a"]

    touch(tmp_path / "a", "1", 1)
    files = await WatchedFiles.of(listed)
    touch(tmp_path / "a", "2", 2)
    assert await files.saved() == {tmp_path / "a"}
    assert len(threads) == 3
    assert threading.get_ident() not in threads


@pytest.mark.parametrize(
    ("reference", "own"), [("a.py", True), ("a/b.py:c", True), ("shop.operator:manager", True), ("webapp", False)]
)
def test_which_operators_are_code_of_the_user(reference: str, own: bool) -> None:
    assert is_own_code(reference) is own


@pytest.mark.spec("O-23")
def test_the_files_of_an_operator_are_those_of_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("shop/operator.py", "shop/deep/kinds.py", "shop/notes.txt", "shop/.venv/x.py", "alone.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    def names(reference: str) -> set[str]:
        return {str(path.absolute().relative_to(tmp_path)) for path in files_of_code(reference)}

    assert names("shop.operator:manager") == {"shop/operator.py", "shop/deep/kinds.py"}
    assert names("shop/operator.py:manager") == {"shop/operator.py", "shop/deep/kinds.py"}
    assert "alone.py" in names("alone:manager")
    assert {path.name for path in files_of_code("json.decoder:x")} >= {"decoder.py"}
    with pytest.raises(UsageError, match="no module"):
        names("nowhere.to:go")


@pytest.mark.blocking
@pytest.mark.spec("O-23")
async def test_code_is_loaded_in_a_process_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "notes.py"
    file.write_text(OPERATOR)
    process = OperatorProcess([str(file)], tmp_path / "kubeconfig", lambda text: None)
    [definition] = (await process.loaded()).definitions
    assert definition["metadata"]["name"] == "notes.docs.example.com"
    file.write_text(OPERATOR.replace("size: int = 1", "size: str = ''"))
    [definition] = (await process.loaded()).definitions
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema["properties"]["spec"]["properties"]["size"]["type"] == "string", "a fresh interpreter"
    file.write_text(OPERATOR + "def broken(")
    with pytest.raises(NotLoaded, match="was never closed"):
        await process.loaded()
    file.write_text(OPERATOR + "import os\nos.system('echo hello')\n")
    with pytest.raises(NotLoaded, match="hello"):
        await process.loaded()
    assert not process.running


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--watch",), "needs something to watch"),
        (("-f", "typo.yaml"), "typo.yaml does not exist"),
        (("-f", "-", "--detach"), "put the manifests into a file"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["up", "--operators", "none", *arguments]) in (1, 2)
    assert message in capsys.readouterr().err


PAGE = """
from konverge.console import Action, Card, Column, Input, Page

console_pages = [
    Page.of(
        Note,
        title="%s",
        columns=[Column("Size", "spec.size", "number")],
        cards=[Card("Conditions", "status.conditions", "conditions")],
        actions=[Action("grow", "Grow", patch={"spec": {"size": {"$form": "n"}}}, form=[Input("n", "Size", "number")])],
        sample={"spec": {"size": 2}},
    )
]
"""


@pytest.mark.blocking
@pytest.mark.spec("C-29")
async def test_the_console_has_the_pages_of_code_under_development_and_follows_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "notes.py"
    file.write_text(OPERATOR + PAGE % "Notes")

    async def restarted(process: OperatorProcess) -> None:
        """What runs is the subject of other tests."""

    monkeypatch.setattr(OperatorProcess, "restart", restarted)
    async with ApiServer() as server, Client(server.transport, credentials=Static.bearer(server.token)) as client:
        console = Console(server.transport, pages=pages_of([]))
        own = bench(client, tmp_path, [])

        def show(pages: Sequence[Page]) -> None:
            console.pages = pages_of([], pages)

        own = replace(own, references=[str(file)], show_pages=show)
        working = DevLoop(own, watch=True)
        assert "notes" not in {page.name for page in console.pages}
        assert await working.load()
        shown = {page.name: page for page in console.pages}
        assert shown["notes"].title == "Notes"
        assert shown["notes"].api_version == "docs.example.com/v1"
        assert shown["notes"].actions[0].form[0].type == "number"
        assert shown.keys() > {"nacos", "webapps"}
        file.write_text(OPERATOR + PAGE % "All notes")
        assert await working.load()
        assert [page.title for page in console.pages if page.name == "notes"] == ["All notes"]
        file.write_text(OPERATOR + "def broken(")
        assert not await working.load()
        assert "notes" in {page.name for page in console.pages}, "the code of before goes on"
        file.write_text(OPERATOR)
        assert await working.load()
        assert "notes" not in {page.name for page in console.pages}


@pytest.mark.blocking
@pytest.mark.spec("O-23")
async def test_an_operator_ends_though_a_process_of_it_keeps_its_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: asyncio.Queue[str] = asyncio.Queue()
    script = "sleep 1000 & echo $!; exec sleep 1000"
    monkeypatch.setattr("konverge.cli.operator_process._KONVERGE", ("/bin/sh", "-c", script))
    monkeypatch.setattr("konverge.cli.operator_process.OUTPUT_WITHIN", 0.01)
    process = OperatorProcess(["notes.py"], tmp_path / "kubeconfig", said.put_nowait)
    await process.restart()
    left = int((await said.get()).removeprefix("| "))
    try:
        async with asyncio.timeout(60):
            await process.stop()
        assert not process.running
        assert "operator output" not in {task.get_name() for task in asyncio.all_tasks()}
        os.kill(left, 0)  # it is still there: it is not what was ended
    finally:
        os.kill(left, signal.SIGKILL)


@pytest.mark.blocking
@pytest.mark.spec("O-23")
async def test_an_interrupt_of_the_terminal_reaches_the_operator_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal interrupts all processes of its session's group; the operator's signal comes from `stop` alone."""
    said: asyncio.Queue[str] = asyncio.Queue()
    script = "trap 'echo ended' TERM; echo $$; read line"
    monkeypatch.setattr("konverge.cli.operator_process._KONVERGE", ("/bin/sh", "-c", script))
    process = OperatorProcess(["notes.py"], tmp_path / "kubeconfig", said.put_nowait)
    await process.restart()
    assert os.getsid(int((await said.get()).removeprefix("| "))) != os.getsid(0)
    await process.stop()
    assert await said.get() == "| ended"


@pytest.mark.blocking
@pytest.mark.spec("O-23")
async def test_files_named_like_the_standard_library_harm_no_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("types.py", "asyncio.py", "json.py"):
        (tmp_path / name).write_text("raise RuntimeError('not for konverge')\n")
    (tmp_path / "operator.py").write_text(OPERATOR + "import near\n")
    (tmp_path / "near.py").touch()
    process = OperatorProcess(["operator.py"], tmp_path / "kubeconfig", lambda text: None)
    [definition] = (await process.loaded()).definitions
    assert definition["metadata"]["name"] == "notes.docs.example.com"
    child = background._spawn("mine", ["--version"], tmp_path / "log")
    assert child.stdout is not None
    with child.stdout:
        printed = await asyncio.to_thread(child.stdout.read)
    await asyncio.to_thread(child.wait)
    assert child.returncode == 0, (tmp_path / "log").read_text()
    assert printed.startswith(b"konverge")
