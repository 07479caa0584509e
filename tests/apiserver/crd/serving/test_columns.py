"""Printer columns that cannot be read, and definitions that cannot be compiled: what else is served all the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.apiserver.crd.serving import resources
from tests.apiserver.api import MERGE, Api
from tests.apiserver.crd.recordings import DEFINITIONS, Row
from tests.apiserver.definitions import define, definition

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
CRABS = "/apis/example.com/v1/crabs"
SHRIMPS = "/apis/example.com/v1/shrimps"
WHOLE = {"Name": "x", "Before": 7, "Asked": None, "After": 7}


def crabs(path: str) -> Row:
    asked = [(".spec.n", "Before"), (path, "Asked"), (".spec.n", "After")]
    columns = [{"name": name, "type": "integer", "jsonPath": where} for where, name in asked]
    made: Row = definition("crabs", "Crab", scope="Cluster", additionalPrinterColumns=columns)
    return made


async def tables(api: Api) -> list[Row]:
    """The object x by the names of its columns: in a list, and by itself."""
    shown = []
    for path in (CRABS, f"{CRABS}/x"):
        table = await api.call("GET", path, accept=TABLE)
        names = [column["name"] for column in table["columnDefinitions"]]
        shown += [dict(zip(names, row["cells"], strict=True)) for row in table["rows"]]
    return shown


# As kube-apiserver 1.37.1 answers: it leaves the columns out from the first one on that it cannot read.
@pytest.mark.spec("S-69")
@pytest.mark.parametrize(
    ("path", "cells"),
    [
        (".spec.a[-]", {"Name": "x", "Before": 7}),
        (".spec.a[-:]", {"Name": "x", "Before": 7}),
        (".spec.a[1:-]", {"Name": "x", "Before": 7}),
        (f".spec.a[{'9' * 5000}]", {"Name": "x", "Before": 7}),
        (".spec.a[9223372036854775808]", {"Name": "x", "Before": 7}),
        (".spec.a[9223372036854775807]", WHOLE),
        (".spec.a[?(@>-)]", {"Name": "x", "Before": 7}),
        (f".spec.a[?(@>{'9' * 5000})]", {"Name": "x", "Before": 7}),
        (f".spec.a[?(@>{'9' * 20})]", WHOLE),
        (".spec" + "[?(@.a" * 600 + ")]" * 600, {"Name": "x", "Before": 7}),
        (".spec.a[-1]", {**WHOLE, "Asked": 2}),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
async def test_a_column_that_cannot_be_read_costs_itself_and_those_after_it(
    tmp_path: Path, path: str, cells: Row
) -> None:
    async with ApiServer(data_dir=tmp_path) as server:
        api = Api(server)
        async with api.watch(DEFINITIONS) as watch:
            await define(api, crabs(path))
            assert (await watch.next())["type"] == "ADDED"
        await api.call("POST", CRABS, crab("Crab"))
        assert await tables(api) == [cells, cells]
    async with ApiServer(data_dir=tmp_path) as server:
        assert await tables(Api(server)) == [cells, cells]


def crab(kind: str) -> Row:
    return {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "x"}, "spec": {"n": 7, "a": [1, 2]}}


def fail_for_crabs(monkeypatch: pytest.MonkeyPatch) -> None:
    serve = resources.serve

    def failing(definition: Row, *arguments: Any) -> Any:
        if definition["spec"]["names"]["kind"] == "Crab":
            raise RecursionError("too deep")
        return serve(definition, *arguments)

    monkeypatch.setattr(resources, "serve", failing)


async def status_of(api: Api, path: str) -> int:
    return (await api.send("GET", path)).status


LOGGED = "cannot serve the kind of definition crabs.example.com; it is served as before, or not at all"


@pytest.mark.spec("S-69")
async def test_a_server_starts_without_a_kind_that_it_cannot_serve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with ApiServer(data_dir=tmp_path) as server:
        for plural, kind in (("crabs", "Crab"), ("shrimps", "Shrimp")):
            await define(Api(server), definition(plural, kind, scope="Cluster"))
    fail_for_crabs(monkeypatch)
    async with ApiServer(data_dir=tmp_path) as server:
        api = Api(server)
        assert [await status_of(api, path) for path in (CRABS, SHRIMPS)] == [404, 200]
        assert [record.getMessage() for record in caplog.records] == [LOGGED]
        assert caplog.records[0].exc_info is not None
        monkeypatch.undo()
        await described(api)
        assert await status_of(api, CRABS) == 200, "the next change is another attempt"


async def described(api: Api) -> None:
    """Change the definition of crabs: another description of their version."""
    versions = definition("crabs", "Crab")["spec"]["versions"]
    versions[0]["schema"]["openAPIV3Schema"]["description"] = "They walk sideways."
    change = {"spec": {"versions": versions}}
    await api.call("PATCH", f"{DEFINITIONS}/crabs.example.com", change, content_type=MERGE)


@pytest.mark.spec("S-69")
async def test_a_change_that_cannot_be_served_leaves_the_kind_as_it_was(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await define(api, definition("crabs", "Crab", scope="Cluster"))
    fail_for_crabs(monkeypatch)
    async with api.watch(DEFINITIONS) as watch:
        await watch.next()
        await described(api)
        assert (await watch.next())["type"] == "MODIFIED", "others hear of the write"
    assert LOGGED in [record.getMessage() for record in caplog.records]
    await api.call("POST", CRABS, crab("Crab"))


@pytest.mark.spec("S-69")
async def test_a_large_definition_that_cannot_be_served_is_settled(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Large ones are compiled in a task of their own."""
    fail_for_crabs(monkeypatch)
    schema = {"type": "object", "description": "deep " * 40_000}
    await define(api, definition("crabs", "Crab", scope="Cluster", schema=schema))
    assert LOGGED in [record.getMessage() for record in caplog.records]
    assert await status_of(api, CRABS) == 404
