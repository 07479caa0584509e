"""How large a stored object may be. The sizes are those at which kube-apiserver with etcd stops (tests/real)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.api import APPLY, MERGE, Api
from tests.apiserver.definitions import define, definition

pytestmark = pytest.mark.spec("T-09")
BIG = definition("bigs", "Big", group="x.io")
BIGS = "/apis/x.io/v1/namespaces/default/bigs"
LAST = 1_572_570
"""Letters of the largest object `b` of one text that the real server stores; its managedFields do not fit any more."""
OWNED = LAST - 163
"""As many with the managedFields that a first write gives it."""


def big(letters: int, letter: str = "x") -> dict[str, Any]:
    return {"apiVersion": "x.io/v1", "kind": "Big", "metadata": {"name": "b"}, "spec": letter * letters}


async def refusal(api: Api, method: str, path: str, body: Any, **more: Any) -> str:
    refused = await api.call(method, path, body, expect=500, **more)
    assert "reason" not in refused
    return str(refused["message"])


async def test_the_largest_object_is_as_large_as_in_the_real_server(api: Api) -> None:
    await define(api, BIG)
    stored = await api.call("POST", BIGS, big(OWNED), user_agent="unknown")
    assert stored["metadata"]["managedFields"]
    await api.call("DELETE", f"{BIGS}/b")
    for letters in (OWNED + 1, LAST):
        stored = await api.call("POST", BIGS, big(letters), user_agent="unknown")
        assert "managedFields" not in stored["metadata"]
        assert (await api.call("GET", f"{BIGS}/b"))["metadata"] == stored["metadata"]
        await api.call("DELETE", f"{BIGS}/b")
    assert await refusal(api, "POST", BIGS, big(LAST + 1)) == "etcdserver: request is too large"
    assert (await api.send("GET", f"{BIGS}/b")).status == 404


async def test_far_larger_objects_are_refused_by_the_client_of_etcd(api: Api) -> None:
    await define(api, BIG)
    message = await refusal(api, "POST", BIGS, big(2_097_000), user_agent="unknown")
    why = "trying to send message larger than max (2097280 vs. 2097152)"
    assert message == f"rpc error: code = ResourceExhausted desc = {why}"


async def test_characters_that_go_escapes_count_as_six(api: Api) -> None:
    await define(api, BIG)
    assert await refusal(api, "POST", BIGS, big(LAST // 6 + 1, "<")) == "etcdserver: request is too large"
    await api.call("POST", BIGS, big(LAST // 6 - 1, "&"))


async def test_updates_and_patches_are_limited_and_leave_the_object_as_it_is(api: Api) -> None:
    await define(api, BIG)
    made = await api.call("POST", BIGS, big(1))
    too_large = {**made, "spec": "x" * (LAST + 1)}
    assert await refusal(api, "PUT", f"{BIGS}/b", too_large) == "etcdserver: request is too large"
    change = {"spec": "x" * (LAST + 1)}
    assert await refusal(api, "PATCH", f"{BIGS}/b", change, content_type=MERGE) == "etcdserver: request is too large"
    assert await api.call("GET", f"{BIGS}/b") == made
    fits = await api.call("PATCH", f"{BIGS}/b", {"spec": "x" * (LAST - 100)}, content_type=MERGE)
    assert "managedFields" not in fits["metadata"]


async def test_an_apply_keeps_its_managed_fields_or_is_refused(api: Api) -> None:
    await define(api, BIG)
    message = await refusal(api, "PATCH", f"{BIGS}/b?fieldManager=m", big(LAST - 50), content_type=APPLY)
    assert message == "etcdserver: request is too large"
    assert (await api.send("GET", f"{BIGS}/b")).status == 404


async def test_a_dry_run_is_not_limited(api: Api) -> None:
    await define(api, BIG)
    await api.call("POST", f"{BIGS}?dryRun=All", big(2_200_000))


async def test_built_in_kinds_are_limited_too(api: Api) -> None:
    revisions = "/apis/apps/v1/namespaces/default/controllerrevisions"
    body = {"metadata": {"name": "b"}, "revision": 1, "data": {"a": "x" * 1_500_000}}
    await api.call("POST", revisions, body)
    body = {"metadata": {"name": "c"}, "revision": 1, "data": {"a": "x" * 1_600_000}}
    assert await refusal(api, "POST", revisions, body) == "etcdserver: request is too large"
