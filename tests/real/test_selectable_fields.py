"""Field selectors of a kind with several versions, on the real server and on ours: the same objects and events."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from typing import Any

import pytest

from tests.apiserver.api import MERGE
from tests.apiserver.crd import applied_versions as versions
from tests.real.converted_kinds import Hook, define, running_hook
from tests.real.sides import NAMESPACE, Side

KINDS = count()


@pytest.fixture(scope="module")
def hook() -> Iterator[Hook]:
    with running_hook() as hook:
        yield hook


def _lists(side: Side, group: str) -> list[Any]:
    """Which objects each version's selectors choose, and what is said where it has no such field."""
    seen = []
    for version in ("v0", "v1", "v2"):
        for selector in ("spec.size=1", "spec.size!=1", "spec.dims=1", "spec.dims=", "spec.color=red"):
            path = f"/apis/{group}/{version}/namespaces/{NAMESPACE}/boxes"
            code, answer = side.send("GET", path, fieldSelector=selector)
            names = [item["metadata"]["name"] for item in answer.get("items", ())]
            seen.append((version, selector, code, names, answer.get("message")))
    return seen


def _events(side: Side, group: str, version: str, selector: str, since: str) -> list[tuple[str, str]]:
    """Until the object comes that is made last."""
    path = f"/apis/{group}/{version}/namespaces/{NAMESPACE}/boxes?watch=true&resourceVersion={since}"
    kind = http.client.HTTPConnection if side.tls is None else http.client.HTTPSConnection
    more: Any = {} if side.tls is None else {"context": side.tls}
    connection = kind(side.host, side.port, timeout=60, **more)
    with closing(connection):
        connection.request("GET", f"{path}&fieldSelector={selector}", headers=side.headers)
        response, seen = connection.getresponse(), []
        while (event := json.loads(response.readline()))["object"]["metadata"]["name"] != "last":
            seen.append((event["type"], event["object"]["metadata"]["name"]))
    return seen


@pytest.mark.spec("S-55")
@pytest.mark.parametrize("form", versions.FORMS)
def test_objects_are_selected_alike(sides: tuple[Side, Side], hook: Hook, form: str) -> None:
    storage, by_webhook = versions.FORMS[form]
    definition = versions.selectable(f"s{next(KINDS)}", storage, hook.place if by_webhook else None)
    group, answers = definition["spec"]["group"], []
    for side in sides:
        define(side, definition)
        made = [("v1", "a", {"size": "1"}), ("v2", "b", {"dims": "1"}), ("v2", "c", {"dims": "2"}), ("v1", "d", {})]
        collections = {version: f"/apis/{group}/{version}/namespaces/{NAMESPACE}/boxes" for version in ("v1", "v2")}
        since = side.send("GET", collections["v1"])[1]["metadata"]["resourceVersion"]
        for version, name, spec in made:
            body = {"apiVersion": f"{group}/{version}", "kind": "Box", "metadata": {"name": name}, "spec": spec}
            assert side.send("POST", collections[version], body)[0] == 201
        seen = _lists(side, group)
        side.send("PATCH", f"{collections['v1']}/a", {"spec": {"size": "2"}}, MERGE)
        side.send("PATCH", f"{collections['v2']}/c", {"spec": {"dims": "1"}}, MERGE)
        for version in ("v1", "v2") if by_webhook else ("v1",):  # or v2 loses the field
            body = {"apiVersion": f"{group}/{version}", "kind": "Box", "metadata": {"name": "last"}}
            body |= {"spec": {versions.RENAMED[version]: "1"}}
            assert side.send("POST", collections[version], body)[0] == 201
            seen.append(_events(side, group, version, f"spec.{versions.RENAMED[version]}=1", since))
            side.send("DELETE", f"{collections[version]}/last")
        answers.append(json.loads(json.dumps(seen).replace(group, "GROUP")))
    assert answers[1] == answers[0]
