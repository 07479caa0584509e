"""The live view: rows as objects change, drawn or printed as lines."""

from __future__ import annotations

import asyncio
import io
import logging
import os
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.cli.live import PlainView, Row, TableView, state_of, watching
from konverge.cli.terminal import Paint
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


@pytest.mark.virtual
async def test_a_table_is_redrawn_with_the_news_above(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINES", "8")
    monkeypatch.setenv("COLUMNS", "40")
    stream = io.StringIO()
    view = TableView(stream, Paint(colours=False))
    drawing = asyncio.create_task(view.run())
    for number in range(6):
        view.changed(Row("Pod", f"p{number}", "Running", "1/1"))
    await asyncio.sleep(1)
    view.gone(Row("Pod", "p0", "Running", "1/1"))
    view.emit(logging.LogRecord("x", logging.WARNING, "", 0, "something %s", ("drifted",), None))
    await asyncio.sleep(1)
    drawing.cancel()
    first, second = stream.getvalue().split("\x1b[J")[1:]
    assert first.splitlines()[1:3] == ["KIND  NAME  STATE    READY", "Pod   p0    Running  1/1"]
    assert first.splitlines()[-2] == "… and 2 more"
    assert second.splitlines()[0] == "something drifted"
    assert "p0" not in second


def test_an_unread_pipe_does_not_stop_the_cluster() -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb", buffering=0) as read, os.fdopen(writer, "w") as stream:
        view, row = PlainView(stream), Row("Pod", "x" * 100, "Running", "1/1")
        for _ in range(2000):
            view.changed(row)
        unread = 2000 - read.read(1 << 20).count(b"\n")
        view.changed(row)
        assert 0 < unread < 2000
        assert read.read(1 << 20).decode().splitlines()[0] == f"  … {unread} changes were not shown"


def test_a_reader_that_has_gone_is_no_failure() -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as stream:
        os.close(reader)
        PlainView(stream).changed(Row("Pod", "x", "Running", "1/1"))


def test_what_is_deleted_says_so() -> None:
    assert state_of({"metadata": {"deletionTimestamp": "now"}, "spec": {"replicas": 1}}) == ("deleting", "0/1")
    assert state_of({}) == ("converging", "")
