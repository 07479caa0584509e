"""Saving a status alone: which patches are sent, guarded by which version, and when it is given up."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from konverge.client import Client, Conflict, MergePatch, NotFound
from konverge.client.errors import error_from_answer
from konverge.objects.kinds.policy_v1 import PodDisruptionBudget
from konverge.objects.meta import ObjectMeta
from konverge.runtime import Context, Request
from konverge.runtime.context import STATUS_ATTEMPTS
from tests.runtime.test_context import Caches, Events, raw, record

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-24")]


def refused(code: int, reason: str, name: str = "p") -> Any:
    body = {"kind": "Status", "code": code, "reason": reason, "message": "no", "details": {"name": name}}
    return error_from_answer(code, json.dumps(body).encode())


def budget(version: int, uid: str = "u", **status: int) -> PodDisruptionBudget:
    meta = ObjectMeta(name="p", namespace="shop", uid=uid, resource_version=str(version), generation=1)
    made = PodDisruptionBudget(metadata=meta)
    for name, value in status.items():
        setattr(made.status, name, value)
    return made


class Server(Client):
    """Has one object; its first writers lose to others, which raise its version."""

    def __init__(self, conflicts: int = 0) -> None:
        self.live: PodDisruptionBudget | None = budget(5)
        self.conflicts = conflicts
        self.bodies: list[Any] = []
        self.missing = "p"

    async def get_bytes(self, kind: Any, name: str, namespace: str = "", **options: Any) -> bytes:
        assert (name, namespace) == ("p", "shop")
        if self.live is None:
            raise refused(404, "NotFound")
        return raw(self.live)

    async def send_patch(self, kind: Any, name: str, patch: Any, namespace: str = "", **options: Any) -> bytes:
        assert (kind, name, namespace) == (PodDisruptionBudget, "p", "shop")
        assert options == {"subresource": "status", "field_manager": "me"}
        assert isinstance(patch, MergePatch)
        self.bodies.append(patch.body)
        if self.live is None:
            raise refused(404, "NotFound", self.missing)
        version = int(self.live.metadata.resource_version)
        self.live.metadata.resource_version = str(version + 1)
        if self.conflicts:
            self.conflicts -= 1
            raise refused(409, "Conflict")
        for name, value in patch.body["status"].items():
            setattr(self.live.status, {"currentHealthy": "current_healthy"}[name], value)
        return raw(self.live)


def context(server: Server, read: PodDisruptionBudget | None = None) -> Context[PodDisruptionBudget]:
    return Context(
        Request("shop", "p"),
        PodDisruptionBudget,
        record(read or budget(5)),
        client=server,
        caches=Caches(),
        recorder=Events(),
        manager="me",
        reasons=(),
        log=logging.getLogger("konverge.controller"),
    )


@pytest.mark.parametrize("conflicts", range(STATUS_ATTEMPTS))
async def test_a_status_is_written_on_what_others_wrote_in_between(conflicts: int) -> None:
    server = Server(conflicts)
    ctx = context(server)
    assert not await ctx.save_status()
    ctx.obj.status.current_healthy = 3
    assert await ctx.save_status() is True
    assert server.bodies == [
        {"metadata": {"resourceVersion": str(5 + attempt)}, "status": {"currentHealthy": 3}}
        for attempt in range(conflicts + 1)
    ]
    assert await ctx.save_status() is False
    ctx.obj.status.current_healthy = 4
    assert await ctx.save_status() is True
    assert server.bodies[-1] == {
        "metadata": {"resourceVersion": str(6 + conflicts)},
        "status": {"currentHealthy": 4},
    }
    # What was read again is not what `ctx.obj` was read from: its metadata must not be written over.
    assert ctx.obj.metadata.resource_version == ("5" if conflicts else "7")


async def test_after_some_conflicts_the_key_is_tried_again_later() -> None:
    server = Server(STATUS_ATTEMPTS)
    ctx = context(server)
    ctx.obj.status.current_healthy = 3
    with pytest.raises(Conflict):
        await ctx.save_status()
    assert len(server.bodies) == STATUS_ATTEMPTS


async def test_what_another_wrote_already_is_not_written_again() -> None:
    server = Server(1)
    ctx = context(server)
    server.live = budget(7, current_healthy=3)
    ctx.obj.status.current_healthy = 3
    assert await ctx.save_status() is False
    assert len(server.bodies) == 1


@pytest.mark.parametrize("successor", [True, False])
async def test_the_status_of_an_object_that_is_gone_needs_no_writing(successor: bool) -> None:
    server = Server(1)
    ctx = context(server)
    server.live = budget(9, uid="another") if successor else None
    ctx.obj.status.current_healthy = 3
    assert await ctx.save_status() is False
    assert len(server.bodies) == 1


async def test_a_missing_subresource_is_an_error() -> None:
    server = Server()
    ctx = context(server)
    server.live, server.missing = None, ""
    ctx.obj.status.current_healthy = 3
    with pytest.raises(NotFound):
        await ctx.save_status()


async def test_a_status_in_another_order_is_the_same() -> None:
    server, read = Server(), budget(5)
    read.status.disrupted_pods = {"a": "2026-01-01T00:00:00Z", "b": "2026-01-02T00:00:00Z"}
    ctx = context(server, read)
    ctx.obj.status.disrupted_pods = dict(reversed(ctx.obj.status.disrupted_pods.items()))
    assert await ctx.save_status() is False
    assert server.bodies == []
