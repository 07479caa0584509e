"""The live view: rows as objects change, drawn or printed as lines."""

from __future__ import annotations

import asyncio
import io
import logging
import os
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.cli.live import PlainView, Row, TableView, watching
from konverge.cli.object_health import Health, Sickness
from konverge.cli.terminal import Paint, Screen, cut
from konverge.client import Client, MergePatch, Static
from konverge.objects.kinds.core_v1 import ReplicationController

SPACE = "default"


def controller(name: str, replicas: int) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": replicas, "selector": {"a": name}, "template": template}
    meta = {"name": name, "namespace": SPACE}
    return {"apiVersion": "v1", "kind": "ReplicationController", "metadata": meta, "spec": spec}


@pytest.mark.virtual
async def test_changes_that_show_are_told_once_each() -> None:
    stream = io.StringIO()
    async with ApiServer() as server, Client(server.transport, credentials=Static.bearer(server.token)) as client:
        await client.create(controller("old", 0))
        async with watching(client, [ReplicationController.resource], PlainView(stream)):
            await asyncio.sleep(1)
            await client.create(controller("new", 1))
            await client.patch(
                ReplicationController, "new", MergePatch({"metadata": {"labels": {"no": "difference"}}}), SPACE
            )
            status = MergePatch({"status": {"replicas": 1, "readyReplicas": 1}})
            await client.patch(ReplicationController, "new", status, SPACE, subresource="status")
            await client.delete(ReplicationController, "old", SPACE, propagation="Background")
            await asyncio.sleep(1)
    assert stream.getvalue().splitlines() == [
        "  ReplicationController default/old ready 0/0",
        "  ReplicationController default/new converging 0/1",
        "  ReplicationController default/new ready 1/1",
        "  ReplicationController default/old gone",
    ]


def row(name: str, sickness: Sickness = Sickness.FINE, kind: str = "Pod", **more: Any) -> Row:
    return Row(kind, name, Health(sickness, more.pop("state", "Running"), more.pop("ready", "1/1"), **more))


@pytest.mark.spec("O-24")
def test_the_sickest_come_first_and_it_fits_a_small_terminal() -> None:
    view = TableView(Screen(io.StringIO(), Paint(colours=False)), ["heading"] * 30, "q ends it")
    for number in range(300):
        view.changed(row(f"default/web-{number:03}"))
    view.changed(row("default/waits", Sickness.WAITING, state="Pending", ready="0/1", reason="0/3 nodes fit" * 20))
    view.changed(row("default/loops", Sickness.FAILED, state="CrashLoopBackOff", ready="0/1", restarts=4))
    view.changed(row("default/loops-more", Sickness.FAILED, state="CrashLoopBackOff", ready="0/1", restarts=40))
    view.changed(row("default/restarted", Sickness.RESTARTED, restarts=2))
    view.say("one\ntwo\nthree\nfour\nfive\nsix")
    lines = view.lines(79, 23)
    texts = [line.text for line in lines]
    assert len(lines) == 23
    assert max(map(len, texts)) <= 79
    table = texts[texts.index("") + 1 :]
    assert table[0].split() == ["KIND", "NAME", "STATE", "READY", "RESTARTS", "REASON"]
    names = [line.split()[1] for line in table[1:5]]
    assert names == ["default/loops-more", "default/loops", "default/waits", "default/restarted"]
    assert texts[-6:] == ["two", "three", "four", "five", "six", "304 objects, 3 not ready   q ends it"]
    assert [line.meaning for line in lines[texts.index("") + 1 :][:5]] == ["bold", "fail", "fail", "warn", "warn"]


@pytest.mark.spec("O-24")
@pytest.mark.parametrize(("columns", "height"), [(1, 1), (10, 3), (79, 23), (200, 60)])
def test_it_fits_any_terminal(columns: int, height: int) -> None:
    view = TableView(Screen(io.StringIO(), Paint(colours=False)), ["heading"] * 3)
    for number in range(100):
        view.changed(row(f"default/{'long-' * 20}{number}", reason="because\x1b[2J of this" * 9))
    view.say("news")
    lines = view.lines(columns, height)
    assert len(lines) <= height
    assert all(len(cut(line.text, columns)) <= columns and "\x1b" not in cut(line.text, columns) for line in lines)


@pytest.mark.virtual
@pytest.mark.spec("O-24")
async def test_the_screen_is_redrawn_when_something_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINES", "24")
    monkeypatch.setenv("COLUMNS", "80")
    stream = io.StringIO()
    view = TableView(Screen(stream, Paint(colours=False)))
    drawing = asyncio.create_task(view.run())
    await asyncio.sleep(10)
    view.changed(row("default/a"))
    await asyncio.sleep(10)
    view.gone(row("default/a"))
    view.emit(logging.LogRecord("x", logging.WARNING, "", 0, "something %s", ("drifted",), None))
    await asyncio.sleep(10)
    view.redraw()
    await asyncio.sleep(10)
    drawing.cancel()
    frames = stream.getvalue().split("\x1b[H")[1:]
    assert len(frames) == 4
    assert ["default/a" in frame for frame in frames] == [False, True, False, False]
    assert ["something drifted" in frame for frame in frames] == [False, False, True, True]


@pytest.mark.virtual
@pytest.mark.spec("O-23")
async def test_differences_are_said_when_they_are_asked_for() -> None:
    stream = io.StringIO()
    async with ApiServer() as server, Client(server.transport, credentials=Static.bearer(server.token)) as client:
        await client.create(controller("old", 0))
        async with watching(client, [], PlainView(stream), differences=True) as rows:
            rows.follow([ReplicationController.resource], shown=False)
            await asyncio.sleep(1)
            await client.create(controller("new", 1))
            await client.patch(ReplicationController, "new", MergePatch({"spec": {"replicas": 2}}), SPACE)
            await client.delete(ReplicationController, "old", SPACE, propagation="Background")
            await asyncio.sleep(1)
    assert stream.getvalue().splitlines() == [
        "  + replicationcontroller/new",
        "  replicationcontroller/new spec.replicas 1 → 2",
        "  - replicationcontroller/old",
    ]


def test_an_unread_pipe_does_not_stop_the_cluster() -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb", buffering=0) as read, os.fdopen(writer, "w") as stream:
        view, text = PlainView(stream), "x" * 100
        for _ in range(2000):
            view.say(text)
        unread = 2000 - read.read(1 << 20).count(b"\n")
        view.say(text)
        assert 0 < unread < 2000
        assert read.read(1 << 20).decode().splitlines()[0] == f"  … {unread} changes were not shown"


def test_a_reader_that_has_gone_is_no_failure() -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as stream:
        os.close(reader)
        PlainView(stream).changed(row("x"))


def test_what_is_said_before_the_heading_comes_after_it() -> None:
    stream = io.StringIO()
    view = PlainView(stream, waits=True)
    view.say("first")
    assert stream.getvalue() == ""
    view.begin("ready")
    view.say("second")
    assert stream.getvalue() == "ready\n  first\n  second\n"
