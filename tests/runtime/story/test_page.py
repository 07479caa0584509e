"""`/debug/reconciles`: what its parameters choose, and what it refuses."""

from __future__ import annotations

import json

import pytest

from konverge.cache.record import Key
from konverge.objects.kinds.core_v1 import ConfigMap, Secret
from konverge.runtime.story.entry import Entry
from konverge.runtime.story.page import page_of
from konverge.runtime.story.ring import StoryLimits
from konverge.runtime.story.story import Story
from konverge.wire.message import Response

pytestmark = pytest.mark.virtual


def told(count: int = 3) -> Story:
    story = Story("teller", StoryLimits(reconciles=2_000))
    for controller, kind in (("maps", ConfigMap), ("secrets", Secret)):
        ring = story.ring(controller, kind.resource)
        for number in range(count):
            entry = Entry(Key(f"ns{number}", f"n{number}"), (), 0.0, float(number), number)
            entry.seconds = 0.0
            ring.keep(entry)
    return story


async def asked(text: str, count: int = 3) -> Response:
    query = {name: [value] for name, _, value in (part.partition("=") for part in text.split("&") if part)}
    response = await page_of(told(count))(query)
    assert isinstance(response, Response)
    return response


def names(response: Response) -> list[str]:
    return [f"{one['controller']}/{one['name']}" for one in json.loads(response.body)["reconciles"]]


async def test_the_page_is_json_that_nobody_keeps() -> None:
    response = await asked("")
    assert response.status == 200
    assert [response.headers.get(name) for name in ("Content-Type", "X-Content-Type-Options", "Cache-Control")] == [
        "application/json",
        "nosniff",
        "no-store",
    ]
    assert len(names(response)) == 6


@pytest.mark.parametrize(
    ("query", "chosen"),
    [
        ("controller=maps", ["maps/n2", "maps/n1", "maps/n0"]),
        ("kind=Secret", ["secrets/n2", "secrets/n1", "secrets/n0"]),
        ("controller=maps&namespace=ns1", ["maps/n1"]),
        ("controller=maps&name=n0", ["maps/n0"]),
        ("controller=maps&limit=2", ["maps/n2", "maps/n1"]),
        ("limit=0", []),
        ("controller=maps&limit=999999999", ["maps/n2", "maps/n1", "maps/n0"]),
    ],
)
async def test_its_parameters_choose(query: str, chosen: list[str]) -> None:
    assert names(await asked(query)) == chosen


async def test_a_hundred_are_shown_and_a_thousand_at_most() -> None:
    assert len(names(await asked("controller=maps", 1_002))) == 100
    assert len(names(await asked("controller=maps&limit=5000", 1_002))) == 1_000


@pytest.mark.parametrize("limit", ["", "-1", "1.5", "x", "²", "1234567890"])
async def test_a_limit_that_is_no_number_is_refused(limit: str) -> None:
    response = await asked(f"limit={limit}")
    assert (response.status, response.body) == (400, b"limit must be a whole number\n")
    assert response.headers.get("Content-Type") == "text/plain; charset=utf-8"


async def test_an_unknown_parameter_is_refused_by_name() -> None:
    response = await asked("zebra=1&apple=2&limit=x")
    text = b"unknown parameter apple: known are controller, kind, namespace, name and limit\n"
    assert (response.status, response.body) == (400, text)
