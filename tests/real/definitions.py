"""Definitions of custom resources on the real API server, and plain requests to it."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from konverge.objects import to_json
from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition
from tools.control_plane import ControlPlane

DEFINITIONS_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class Api:
    """Requests to the real server over one kept connection."""

    def __init__(self, plane: ControlPlane) -> None:
        address = urlsplit(plane.url)
        context = ssl.create_default_context(cafile=str(plane.ca_file))
        self._connection = http.client.HTTPSConnection(
            str(address.hostname), address.port, context=context, timeout=120
        )
        self._headers = {"Authorization": f"Bearer {plane.token}", "Content-Type": "application/json"}

    def __call__(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, Any]:
        self._connection.request(method, path, body, {**self._headers, **headers})
        answer = self._connection.getresponse()
        data = answer.read()
        return answer.status, json.loads(data) if data[:1] == b"{" else data.decode()  # "404 page not found"

    def table(self, path: str) -> Any:
        """An object or a list as kubectl would show it."""
        return self("GET", path, Accept=_TABLE)[1]

    def events(self, path: str) -> Iterator[Any]:
        """The objects of a watch, until the server ends it."""
        self._connection.request("GET", path, headers=self._headers)
        with self._connection.getresponse() as answer:
            for line in answer:
                yield json.loads(line)["object"]
        self._connection.close()

    def close(self) -> None:
        self._connection.close()


@contextmanager
def installed(api: Api, *definitions: CustomResourceDefinition) -> Iterator[Api]:
    """The server while it serves these definitions."""
    for definition in definitions:
        status, answer = api("POST", DEFINITIONS_PATH, to_json(definition))
        assert status == 201, answer["message"]
    for definition in definitions:
        wait_until_served(api, definition.metadata.name)
    yield api
    for definition in definitions:
        api("DELETE", f"{DEFINITIONS_PATH}/{definition.metadata.name}")


def wait_until_served(api: Api, name: str) -> None:
    watch = f"{DEFINITIONS_PATH}?watch=1&fieldSelector=metadata.name%3D{name}&timeoutSeconds=100"
    for definition in api.events(watch):
        conditions = {condition["type"]: condition for condition in definition["status"].get("conditions") or ()}
        # A schema that is not structural is accepted at first and reported here.
        assert "NonStructuralSchema" not in conditions, conditions["NonStructuralSchema"]["message"]
        if conditions.get("Established", {}).get("status") == "True":
            api.close()
            break
    else:
        raise AssertionError(f"{name} was not established")
    spec = definition["spec"]
    for version in (entry for entry in spec["versions"] if entry["served"]):
        while not _is_discovered(api, f"/apis/{spec['group']}/{version['name']}", spec["names"]["plural"]):
            time.sleep(0.05)


def _is_discovered(api: Api, path: str, plural: str) -> bool:
    """What discovery names is served; a definition is established a moment before."""
    status, answer = api("GET", path)
    return status == 200 and any(resource["name"] == plural for resource in answer["resources"])
