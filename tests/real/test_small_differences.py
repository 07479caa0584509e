"""Requests whose answers once differed in small ways, to the real server and to ours: the same answers now."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.apiserver.http.test_small_differences import ACCESS, PARTIAL, QUESTION, TABLE
from tests.apiserver.test_held_by_forms import PROTOBUF, member, varint
from tests.real.sides import NAMESPACE, Side

pytestmark = pytest.mark.real

LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases?dryRun=All"
CONFIG_MAP = f"/api/v1/namespaces/{NAMESPACE}/configmaps/small"
CHANGING = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|20\d\d-\d\d-\d\dT[0-9:]+Z|(?<=object meta: )\d+")


def lease(seconds: int) -> bytes:
    moment = varint(1 << 3) + varint(seconds % (1 << 64))
    content = member(1, member(1, b"x")) + member(2, member(1, b"me") + member(3, moment))
    return b"k8s\x00" + member(1, member(1, b"coordination.k8s.io/v1") + member(2, b"Lease")) + member(2, content)


def asked(side: Side, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, Any]:
    """Status, warnings and answer; what must differ is left out."""
    fields = {"Content-Type": "application/json", **{name.replace("_", "-"): text for name, text in headers.items()}}
    sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    side.connection.request(method, path, sent, {**side.headers, **fields})
    response = side.connection.getresponse()
    text = CHANGING.sub("?", response.read().decode())
    answer = json.loads(text)
    metadata = answer.get("metadata") or {}
    metadata.pop("resourceVersion", None)
    return response.status, response.headers.get_all("Warning"), answer


REVIEWS = {
    "access": (ACCESS, QUESTION),
    "rules": ("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"spec": {"namespace": "default"}}),
    "subject": ("/apis/authentication.k8s.io/v1/selfsubjectreviews", {}),
    "token": ("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}}),
}
JSONS = [b"null", b"null ", b"nul", b"nulL", b"true", b"3", b'"x"', b"[]", b"NaN", b'{"data":nul}', b'{"data":nulx}']


@pytest.mark.parametrize("accept", [TABLE, f"{TABLE},application/json", PARTIAL], ids=["table", "either", "metadata"])
@pytest.mark.parametrize("review", REVIEWS)
def test_reviews(sides: tuple[Side, Side], review: str, accept: str) -> None:
    path, body = REVIEWS[review]
    real, ours = (asked(side, "POST", path, body, Accept=accept) for side in sides)
    if review == "rules" and accept.endswith("application/json"):  # the roles are not the same
        real[2].pop("status"), ours[2].pop("status")
    if review == "subject" and "status" in real[2]:
        real[2].pop("status"), ours[2].pop("status")
    assert ours == real


def test_component_statuses(sides: tuple[Side, Side]) -> None:
    path = "/api/v1/componentstatuses/etcd-0"
    for accept in (TABLE, PARTIAL, "application/json"):
        real, ours = (asked(side, "GET", path, Accept=accept) for side in sides)
        assert ours == real
    listed = PARTIAL.replace("Metadata;", "MetadataList;")
    real, ours = (asked(side, "GET", "/api/v1/componentstatuses", Accept=listed) for side in sides)
    for answer in (real, ours):  # upstream asks the components side by side, and lists them as they answer
        answer[2]["items"].sort(key=lambda item: item["metadata"]["name"])
    assert ours == real


def test_a_subresource_that_is_not_there(sides: tuple[Side, Side]) -> None:
    path = "/api/v1/namespaces/default/endpoints/kubernetes/status"
    real, ours = (asked(side, "GET", path) for side in sides)
    assert ours == real


def test_a_namespace_that_is_not_the_one_meant(sides: tuple[Side, Side]) -> None:
    for condition in ({"uid": "x"}, {"resourceVersion": "1"}):
        options = {"preconditions": condition}
        real, ours = (asked(side, "DELETE", f"/api/v1/namespaces/{NAMESPACE}", options) for side in sides)
        assert ours == real


@pytest.mark.parametrize("policy", ["Foreground", "Orphan", "Background"])
def test_a_namespace_is_deleted_by_every_policy(sides: tuple[Side, Side], policy: str) -> None:
    name = f"small-{policy.lower()}"
    for side in sides:
        side.send("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    options = {"propagationPolicy": policy}
    real, ours = (asked(side, "DELETE", f"/api/v1/namespaces/{name}", options) for side in sides)
    assert ours == real


@pytest.mark.parametrize("seconds", [-30_641_760_000, -62_135_596_799, -62_135_596_800, 253_402_300_799])
def test_times_in_protobuf(sides: tuple[Side, Side], seconds: int) -> None:
    real, ours = (asked(side, "POST", LEASES, lease(seconds), Content_Type=PROTOBUF) for side in sides)
    if real[2]["spec"]["acquireTime"] is None:  # the zero time: theirs owns it, ours does not have it
        assert "acquireTime" not in ours[2]["spec"]
        return
    assert ours == real


@pytest.mark.parametrize("text", JSONS)
@pytest.mark.parametrize("form", ["merge-patch", "strategic-merge-patch", "json-patch"])
def test_texts_that_are_nearly_json(sides: tuple[Side, Side], text: bytes, form: str) -> None:
    media = f"application/{form}+json"
    for side in sides:
        side.send("POST", CONFIG_MAP.rpartition("/")[0], {"metadata": {"name": "small"}})
    for path in (CONFIG_MAP, f"{CONFIG_MAP}-not-there"):
        real, ours = (asked(side, "PATCH", path, text, Content_Type=media) for side in sides)
        assert ours == real
