"""What a reconcile notes of its requests, and which reconciles concern an object: the pure parts."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from konverge import clock
from konverge.cache.record import Record
from konverge.client.call import Call
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.objects.kinds.core_v1 import ConfigMap, Secret
from konverge.objects.resource import Resource
from konverge.runtime import Request
from konverge.runtime.story.differences import of_patch
from konverge.runtime.story.entry import MAX_CALLS, Entry
from konverge.runtime.story.ring import StoryLimits
from konverge.runtime.story.story import Story

MAPS, SECRETS = ConfigMap.resource, Secret.resource


def entry(name: str = "a", namespace: str = "default") -> Entry:
    return Entry(Request(namespace, name), (), 0.0, 0.0)


def record(**content: object) -> Record:
    return Record(msgspec.json.encode(content), 0, "", 0)


def write(resource: Resource, name: str, namespace: str = "default", verb: str = "patch", **more: object) -> Call:
    return Call(verb, resource, namespace, name, **more)  # type: ignore[arg-type]


@pytest.mark.spec("R-87")
def test_a_dry_run_is_noted_as_one() -> None:
    noted = entry()
    dry = noted.called(write(MAPS, "a", query={"dryRun": "All"}), None)
    real = noted.called(write(MAPS, "a"), None)
    assert dry is not None
    assert real is not None
    assert (dry.dry_run, real.dry_run) == (True, False)


def test_a_second_write_is_compared_with_what_the_first_left() -> None:
    noted = entry()
    first = noted.called(write(MAPS, "a"), record(data={"x": "1"}))
    assert first is not None
    first.answered(200, b'{"data":{"x":"2"}}', "5")
    others = [write(MAPS, "b"), write(SECRETS, "a"), write(MAPS, "a", "other")]
    for other in others:
        note = noted.called(other, record(data={"x": "old"}))
        assert note is not None
        assert note.before is not None
        assert note.before.raw == b'{"data":{"x":"old"}}', "another object"
    second = noted.called(write(MAPS, "a"), record(data={"x": "1"}))
    assert second is not None
    assert second.before is not None
    assert second.before.raw == b'{"data":{"x":"2"}}'
    unknown = noted.called(write(MAPS, "a"), None)
    assert unknown is not None
    assert unknown.before is None, "nothing was known of it, so nothing is compared"


def test_requests_after_the_end_and_too_many_ones_are_counted() -> None:
    noted = entry()
    for number in range(MAX_CALLS):
        assert noted.called(write(MAPS, str(number)), None) is not None
    assert noted.called(write(MAPS, "more"), None) is None
    late = entry()
    late.seconds = 0.0
    assert late.called(write(MAPS, "a"), None) is None
    assert (noted.left_out, late.left_out, late.calls) == (1, 1, ())


def told(*entries: Entry) -> Story:
    story = Story("teller")
    ring = story.ring("maps", MAPS)
    for each in entries:
        each.seconds = 0.1
        ring.keep(each)
    return story


def names(story: Story, **chosen: Any) -> list[str]:
    return [reconcile.name for reconcile in story.reconciles(**chosen)]


@pytest.mark.spec("R-87")
def test_an_object_is_concerned_by_its_own_reconciles_and_by_those_that_wrote_it() -> None:
    own, writer, reader, elsewhere = entry("a"), entry("writer"), entry("reader"), entry("elsewhere", "other")
    writer.called(write(SECRETS, "a"), None)
    reader.called(write(SECRETS, "a", verb="get"), None)
    elsewhere.called(write(SECRETS, "a", "other"), None)
    reader.called(Call("create", None, "default", "a", path="/elsewhere"), None)
    story = told(own, writer, reader, elsewhere)
    assert names(story, kind="ConfigMap", name="a", namespace="default") == ["a"]
    assert names(story, kind="Secret", name="a", namespace="default") == ["writer"]
    assert sorted(names(story, kind="Secret", name="a")) == ["elsewhere", "writer"]
    assert names(story, kind="Secret", name="b") == []
    assert names(story, kind="Secret") == [], "without a name only the controller's own kind is meant"
    assert names(story, name="a") == ["a"]
    assert sorted(names(story, namespace="default")) == ["a", "reader", "writer"]
    assert len(names(story)) == 4


@pytest.mark.parametrize(
    ("content_type", "body", "shown"),
    [
        ("application/json-patch+json", b'[{"op":"replace","path":"/data/x","value":"2"}]', ["data.x 1 → 2"]),
        ("application/json-patch+json", b'{"data":{"x":"2"}}', ["data.x 1 → 2"]),
        ("application/merge-patch+json", b'{"data":{"x":null}}', ["data.x removed"]),
        ("application/merge-patch+json", b'{"data":{"x":"1"}}', []),
        ("application/apply-patch+yaml", b'{"data":{"x":"2","y":"3"}}', ["data.x 1 → 2", "data.y = 3"]),
    ],
)
def test_what_a_patch_asks_for(content_type: str, body: bytes, shown: list[str]) -> None:
    changes, more = of_patch("ConfigMap", content_type, body, record(data={"x": "1"}))
    assert ([str(change) for change in changes], more) == (shown, 0)


def test_the_latest_come_first_and_the_rest_is_counted() -> None:
    made = [entry(name) for name in "abc"]
    for number, each in enumerate(made):
        each.began, each.number = float(number // 2), number
    story = told(*made)
    assert names(story) == ["c", "b", "a"], "by time, and by number where that is the same"
    assert names(story, limit=2) == ["c", "b"]
    assert [(of, resource, each.key.name) for of, resource, each in story.entries()] == [
        ("maps", MAPS, name) for name in "cba"
    ]
    page = story.page(limit=2)
    assert (page.manager, len(page.reconciles), page.left_out) == ("teller", 2, 1)
    assert story.page(limit=3).left_out == story.page(limit=4).left_out == 0
    latest = story.latest("ConfigMap", "b", "default")
    assert latest is not None
    assert latest.number == 1
    assert story.latest("ConfigMap", "b", "other") is None
    assert msgspec.json.decode(story.json(name="b"))["reconciles"][0]["name"] == "b"


@pytest.mark.parametrize(
    ("kind", "meant"),
    [
        ("Deployment", True),
        ("deployment", True),
        ("DEPLOYMENTS", True),
        ("deployments.apps", True),
        ("Deployment.apps", True),
        ("Deployment.other", False),
        ("apps", False),
        ("deploy", False),
    ],
)
def test_a_kind_is_named_in_several_ways(kind: str, meant: bool) -> None:
    story = Story("teller")
    each = entry()
    each.seconds = 0.1
    story.ring("deployments", Deployment.resource).keep(each)
    assert names(story, kind=kind) == (["a"] if meant else [])


def test_a_key_that_is_no_object_is_found_by_its_text() -> None:
    each = Entry("some key", (), 0.0, 0.0)
    story = told(each)
    assert names(story, name="some key") == ["some key"]
    assert names(story, name="some") == []
    assert names(story, namespace="default") == []


def test_what_runs_is_chosen_like_what_ran() -> None:
    story = Story("teller")
    now = clock.monotonic()
    story.ring("maps", MAPS, {Request("default", "a"): now - 2, Request("other", "b"): now - 1})
    story.ring("secrets", SECRETS, {Request("default", "a"): now})

    def running(**chosen: Any) -> list[tuple[str, str, str, str]]:
        return [(one.controller, one.kind, one.namespace, one.name) for one in story.page(**chosen).running]

    a, b = ("maps", "ConfigMap", "default", "a"), ("maps", "ConfigMap", "other", "b")
    c = ("secrets", "Secret", "default", "a")
    assert running() == [a, b, c]
    assert running(controller="maps") == [a, b]
    assert running(kind="secrets") == [c]
    assert running(namespace="other") == [b]
    assert running(name="a") == [a, c]
    assert [round(one.seconds) for one in story.page().running] == [2, 1, 0]


def test_a_controller_that_ended_is_forgotten() -> None:
    story = told(entry("a"), entry("b"))
    other = entry("c")
    story.ring("others", MAPS).keep(other)
    assert (len(story), story.size) == (3, 1200)
    story.drop("maps")
    story.drop("never there")
    assert (len(story), story.size, names(story)) == (1, 400, ["c"])
    assert (story.limits, Story("x", StoryLimits(reconciles=3)).limits.reconciles) == (StoryLimits(), 3)
