"""When the kind of a definition can be used: kube-apiserver says that it is established a moment before."""

from __future__ import annotations

import json
from typing import Any

import pytest

from konverge.client.definitions import until_served
from konverge.wire import Response
from tests.client.scripted import Script, ok, refused, streamed

NAME = "pools.example.com"
LIST = "GET /apis/example.com/v2/pools?limit=1"


def definition(established: str, **served: bool) -> dict[str, Any]:
    versions = [{"name": name, "served": on, "storage": name == "v1"} for name, on in served.items()]
    names = {"kind": "Pool", "plural": "pools"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions},
        "status": {"conditions": [{"type": "Established", "status": established}]},
    }


def watched(*definitions: dict[str, Any]) -> Response:
    lines = [json.dumps({"type": "MODIFIED", "object": each}).encode() + b"\n" for each in definitions]
    return streamed(*lines)


EMPTY = ok({"apiVersion": "example.com/v2", "kind": "PoolList", "metadata": {}, "items": []})
HERE = {"v1": False, "v2": True}


@pytest.mark.virtual
@pytest.mark.parametrize("answer", [EMPTY, refused(403, "Forbidden"), refused(500, "InternalError")])
async def test_a_kind_is_asked_for_until_it_is_answered(answer: Response) -> None:
    news = (watched(definition("False", **HERE)), watched(definition("False", **HERE), definition("True", **HERE)))
    server = Script(*news, refused(404, "NotFound"), refused(404, "NotFound"), answer)
    async with server.client() as client:
        await until_served(client, NAME)
    assert server.lines[2:] == [LIST] * 3
    assert all(f"fieldSelector=metadata.name%3D{NAME}" in line for line in server.lines[:2])


async def test_a_kind_of_which_no_version_is_served_is_not_asked_for() -> None:
    server = Script(watched(definition("True", v1=False)), refused(404, "NotFound"))
    async with server.client() as client:
        await until_served(client, NAME)
    assert len(server.lines) == 1


async def test_the_stored_version_is_asked_for_if_it_is_served() -> None:
    server = Script(watched(definition("True", v2=True, v1=True)), EMPTY)
    async with server.client() as client:
        await until_served(client, NAME)
    assert server.lines[1:] == [LIST.replace("v2", "v1")]
