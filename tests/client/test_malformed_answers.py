"""Answers that are not what was asked for: whatever they are, the error is one of the client's tree."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from konverge.client import Client, ClientError
from konverge.objects.kinds.core_v1 import ConfigMap
from tests.client.scripted import Script, ok, streamed


async def _all_of(items: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in items]


CALLS: list[Callable[[Client], Awaitable[Any]]] = [
    lambda client: client.version(),
    lambda client: client.get(ConfigMap, "a", "b"),
    lambda client: client.get(ConfigMap.resource, "a", "b"),
    lambda client: client.list(ConfigMap, "b"),
    lambda client: client.list_bytes(ConfigMap, "b"),
    lambda client: client.delete(ConfigMap, "a", "b"),
    lambda client: client.delete_collection(ConfigMap, "b"),
    lambda client: client.get_sub(ConfigMap, "a", "scale", "b"),
    lambda client: client.request_token("a", "b"),
    lambda client: client.mapper.find("x"),
    lambda client: _all_of(client.watch(ConfigMap, "b")),
    lambda client: _all_of(client.watch_bytes(ConfigMap, "b")),
]
MALFORMED = [
    b"<html>",
    b"null",
    b"[]",
    b"\xff\xfe",
    b'"x"',
    b'{"metadata":5,"items":5,"kind":5}',
    b'{"a":' * 5000,
    b'{"kind":"APIGroupDiscoveryList","items":[5]}',
    b'{"kind":"APIVersions","versions":[5]}',
    b'{"kind":"APIGroupList","groups":[{"versions":[{}]}]}',
    b'{"status":5}',
]


@pytest.mark.parametrize("body", MALFORMED, ids=lambda body: repr(body[:40]))
async def test_a_malformed_answer_is_an_error_of_the_client(body: bytes) -> None:
    for call in CALLS:
        for answer in (ok(body), streamed(body, b"\n")):
            with suppress(ClientError):
                await call(Script(answer).client())
