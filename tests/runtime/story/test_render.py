"""From what a reconcile noted to what is shown: every part of it, whole."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from konverge.cache.record import Key, Record
from konverge.cache.store import Change, ChangeType
from konverge.client.call import Call
from konverge.objects.kinds.core_v1 import ConfigMap, Secret
from konverge.runtime.reasons import Changed, External, Resync, Retry, TakenOver, Timer
from konverge.runtime.result import DONE, Result
from konverge.runtime.story.entry import CallNote, Entry
from konverge.runtime.story.model import Cause, EventNote, FieldChange, Read, ReconcileStory, Write
from konverge.runtime.story.render import cause, name_of, reconcile

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-87")]

MAPS, SECRETS = ConfigMap.resource, Secret.resource
KEY = Key("ns", "a")


def entry(key: Any = KEY, **fields: Any) -> Entry:
    made = Entry(key, (), 0.0, 0.0)
    made.seconds = 0.0
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def record(content: Any) -> Record:
    return Record(msgspec.json.encode(content), 0, "", 0)


def shown(made: Entry) -> ReconcileStory:
    return reconcile(made, "maps", MAPS, 0.0)


def write(call: Call, *, before: Record | None = None, after: bytes = b"", large: bool = False) -> Write:
    """How the write of a reconcile is shown, once it is answered."""
    made = entry(seconds=-1.0)
    note = made.called(call, before)
    assert note is not None
    note.status, note.version, note.after, note.seconds, note.large = 200, "5", after, 0.0, large
    (only,) = shown(made).writes
    return only


def test_every_part_of_a_reconcile_is_shown() -> None:
    made = Entry(KEY, (Resync(),), 0.12345678, 10.5, 7)
    made.read(Secret, "ns", "key")
    made.read(Secret, "ns", "app=shop", 0)
    made.event("Warning", "Broken", "it is broken", ConfigMap(kind="ConfigMap"))
    live = made.called(Call("get", SECRETS, "ns", "other"), None)
    path = made.called(Call("get", None, path="/version"), None)
    patch = made.called(
        Call(
            "patch",
            SECRETS,
            "ns",
            "b",
            subresource="status",
            query={"dryRun": "All"},
            body=b'{"status":1}',
            content_type="application/merge-patch+json",
        ),
        None,
    )
    made.called(Call("delete", SECRETS, "ns", "unanswered"), None)
    assert live is not None
    assert path is not None
    assert patch is not None
    live.seconds, live.error = 0.12345678, "not found"
    path.seconds = 0.25
    patch.seconds, patch.status, patch.error, patch.version = 0.98765432, 409, "conflict", "5"
    made.seconds, made.left_out = 1.23456789, 3
    made.failed(ValueError("no"), "no", "app.py:3")
    assert reconcile(made, "maps", MAPS, 1000.0) == ReconcileStory(
        controller="maps",
        kind="ConfigMap",
        api_version="v1",
        namespace="ns",
        name="a",
        number=7,
        began="1970-01-01T00:16:50.500000Z",
        seconds=1.234568,
        waited=0.123457,
        outcome="error",
        error="no",
        error_type="ValueError",
        place="app.py:3",
        reasons=[Cause(type="resync", text="resync")],
        reads=[
            Read(kind="Secret", namespace="ns", name="key"),
            Read(kind="Secret", namespace="ns", query="app=shop", count=0),
            Read(kind="Secret", namespace="ns", name="other", source="live", seconds=0.123457, error="not found"),
            Read(kind="/version", source="live", seconds=0.25),
        ],
        writes=[
            Write(
                method="PATCH",
                kind="Secret",
                api_version="v1",
                namespace="ns",
                name="b",
                subresource="status",
                seconds=0.987654,
                status=409,
                error="conflict",
                resource_version="5",
                dry_run=True,
                changes=[FieldChange(path="status", new=1)],
            )
        ],
        events=[EventNote(type="Warning", reason="Broken", message="it is broken", kind="ConfigMap")],
        left_out=3,
    )


def test_a_request_that_is_answered_at_once_is_shown() -> None:
    made = entry(calls=[CallNote("delete", MAPS, "ns", "b", "", "", "", False, b"", None, 0.0, seconds=0.0)])
    assert shown(made).writes == [Write(method="DELETE", kind="ConfigMap", api_version="v1", namespace="ns", name="b")]


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({}, "done"),
        ({"result": Result(requeue=True)}, "requeue"),
        ({"result": Result(requeue_after=0.5)}, "requeueAfter"),
        ({"gone": True, "result": Result(requeue_after=1)}, "gone"),
        ({"error": "x", "gone": True}, "error"),
    ],
)
def test_how_it_ended(fields: dict[str, Any], outcome: str) -> None:
    made = shown(entry(**fields))
    assert (made.outcome, made.requeue_after) == (outcome, fields.get("result", DONE).requeue_after)


@pytest.mark.parametrize(
    ("key", "named"),
    [(KEY, ("ns", "a")), (Key("", "node"), ("", "node")), ("some text", ("", "some text")), (5, ("", "5"))],
)
def test_a_key_that_is_no_object_is_named_by_its_text(key: Any, named: tuple[str, str]) -> None:
    assert name_of(key) == named


@pytest.mark.parametrize(
    ("reason", "type_", "text"),
    [
        (Timer(1.5), "timer", "asked to come back after 1.5 s"),
        (Resync(), "resync", "resync"),
        (Retry(2, "no"), "retry", "retry 2 after: no"),
        (External("topic", KEY), "external", "topic: ns/a"),
        (TakenOver(), "takenover", "taken over from another process"),
    ],
)
def test_a_reason_that_is_no_change_has_a_type_and_a_text(reason: object, type_: str, text: str) -> None:
    assert cause(reason) == Cause(type=type_, text=text)


def change(type_: ChangeType, old: Any, new: Any, *, initial: bool = False) -> Changed:
    before, after = (None if state is None else record(state) for state in (old, new))
    return Changed("ConfigMap", Change(type_, KEY, before, after, initial=initial))


@pytest.mark.parametrize(
    ("reason", "type_", "text", "paths"),
    [
        (change(ChangeType.ADDED, None, {"a": 1}), "added", "ConfigMap ns/a added", []),
        (change(ChangeType.DELETED, {"a": 1}, None), "deleted", "ConfigMap ns/a deleted", []),
        (change(ChangeType.UPDATED, {"a": 1}, {"a": 2}), "updated", "ConfigMap ns/a updated: a", ["a"]),
        (change(ChangeType.UPDATED, {"a": 1}, {"a": 2}, initial=True), "listed", "ConfigMap ns/a listed", []),
    ],
)
def test_a_change_is_a_reason_with_its_fields(reason: Changed, type_: str, text: str, paths: list[str]) -> None:
    made = cause(reason)
    assert (made.type, made.text, made.kind, made.namespace, made.name) == (type_, text, "ConfigMap", "ns", "a")
    assert ([field.path for field in made.fields], made.more_fields) == (paths, 0)


def test_the_fields_of_a_change_beyond_the_most_are_counted() -> None:
    made = cause(change(ChangeType.UPDATED, {}, {f"f{number}": 1 for number in range(52)}))
    assert (len(made.fields), made.more_fields) == (50, 2)


@pytest.mark.parametrize(
    ("reason", "type_"),
    [
        (change(ChangeType.UPDATED, {"a": 1}, {"a": 2}), "updated"),
        (change(ChangeType.ADDED, None, {"a": 2}, initial=True), "listed"),
    ],
)
def test_a_change_whose_objects_were_let_go_is_still_a_reason(reason: Changed, type_: str) -> None:
    made = entry(reasons=(reason, Resync()))
    made.shorten()
    text = f"ConfigMap ns/a {type_} (its fields were too large to keep)"
    assert shown(made).reasons == [
        Cause(type=type_, text=text, kind="ConfigMap", namespace="ns", name="a"),
        Cause(type="resync", text="resync"),
    ]


@pytest.mark.parametrize("verb", ["delete", "deletecollection"])
def test_the_options_of_a_delete_are_no_changes(verb: str) -> None:
    made = write(Call(verb, MAPS, "ns", "b", body=b'{"propagationPolicy":"Background"}'))
    assert (made.method, made.changes, made.more_changes) == ("DELETE", [], 0)


def test_a_write_is_compared_with_the_answer_where_there_is_one() -> None:
    call = Call("update", MAPS, "ns", "b", body=b'{"data":{"x":"asked"}}')
    old = record({"data": {"x": "1"}})
    assert write(call, before=old, after=b'{"data":{"x":"2"}}').changes == [
        FieldChange(path="data.x", old="1", new="2")
    ]
    assert write(call, before=old).changes == [FieldChange(path="data.x", old="1", new="asked")]
    assert write(call, after=b'{"data":{"x":"2"}}').changes == [FieldChange(path="data.x", new="asked")]


def test_a_write_without_content_has_no_changes() -> None:
    made = write(Call("update", MAPS, "ns", "b"), large=True)
    assert (made.changes, made.more_changes, made.not_kept) == ([], 0, True)


def test_the_changes_of_a_write_beyond_the_most_are_counted() -> None:
    body = msgspec.json.encode({f"f{number}": 1 for number in range(53)})
    made = write(Call("create", MAPS, "ns", "b", body=body))
    assert (len(made.changes), made.more_changes) == (50, 3)


def test_a_write_of_a_path_is_named_by_it() -> None:
    made = write(Call("create", None, path="/custom"))
    assert (made.kind, made.api_version) == ("/custom", "")


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b'{"metadata":{"name":"made","generateName":"made-"}}', "made"),
        (b'{"metadata":{"generateName":"made-"}}', "made-"),
        (b'{"metadata":{}}', ""),
        (b'{"metadata":null}', ""),
        (b"{}", ""),
        (b"[]", ""),
        (b"\xa1", ""),
    ],
)
def test_a_created_object_is_named_by_its_body(body: bytes, name: str) -> None:
    assert write(Call("create", MAPS, "ns", "", body=body)).name == name
