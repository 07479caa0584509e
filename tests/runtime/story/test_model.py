"""The story of a reconcile as a line of text."""

from __future__ import annotations

import msgspec
import pytest

from konverge.runtime.story.model import Cause, FieldChange, ReconcileStory, Write

pytestmark = pytest.mark.spec("R-87")

CHANGES = [FieldChange(path=f"f{number}", new=number) for number in range(8)]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (FieldChange(path="a", old=1, new="x"), "a 1 → x"),
        (FieldChange(path="a", new={"b": [1]}), 'a = {"b":[1]}'),
        (FieldChange(path="a", old=None), "a removed"),
        (FieldChange(path="a"), "a removed"),
        (FieldChange(path="a", old=1, new=2, hidden=True), "a changed (hidden)"),
    ],
)
def test_a_change(change: FieldChange, text: str) -> None:
    assert str(change) == text


@pytest.mark.parametrize(
    ("write", "text"),
    [
        (Write(method="PUT", kind="Pod", name="a"), "PUT Pod a"),
        (Write(method="PUT", kind="Pod", name="a", subresource="status"), "PUT Pod a/status"),
        (Write(method="PUT", kind="Pod", name="a", error="no"), "PUT Pod a: failed: no"),
        (
            Write(method="PUT", kind="Pod", name="a", changes=CHANGES[:6], error="no"),
            "PUT Pod a: f0 = 0; f1 = 1; f2 = 2; f3 = 3; f4 = 4; f5 = 5; failed: no",
        ),
        (
            Write(method="PUT", kind="Pod", name="a", changes=CHANGES, more_changes=3),
            "PUT Pod a: f0 = 0; f1 = 1; f2 = 2; f3 = 3; f4 = 4; f5 = 5; and 5 more",
        ),
    ],
)
def test_a_write(write: Write, text: str) -> None:
    assert str(write) == text


@pytest.mark.parametrize(
    ("story", "text"),
    [
        (ReconcileStory(controller="c", kind="Pod", name="a"), "c a: done (because: no reason)"),
        (
            ReconcileStory(
                controller="c", kind="Pod", namespace="ns", name="a", outcome="requeueAfter", requeue_after=90
            ),
            "c ns/a: comes back after 90 s (because: no reason)",
        ),
        (
            ReconcileStory(
                controller="c",
                kind="Pod",
                name="a",
                outcome="error",
                error="no",
                error_type="ValueError",
                requeue_after=5,
                reasons=[Cause(type="resync", text="resync"), Cause(type="timer", text="a timer")],
                writes=[Write(method="PUT", kind="Pod", name="a"), Write(method="POST", kind="Pod", name="b")],
            ),
            "c a: ValueError: no (because: resync; a timer); PUT Pod a; POST Pod b",
        ),
        (
            ReconcileStory(controller="c", kind="Pod", name="a", error="no", error_type="KeyError", place="app.py:3"),
            "c a: KeyError: no at app.py:3 (because: no reason)",
        ),
    ],
)
def test_a_reconcile(story: ReconcileStory, text: str) -> None:
    assert str(story) == text


def test_what_is_empty_is_left_out_of_the_json() -> None:
    write = Write(method="PUT", kind="Pod", api_version="v1", changes=[FieldChange(path="a", old=None)])
    assert msgspec.json.encode(write) == (
        b'{"method":"PUT","kind":"Pod","apiVersion":"v1","changes":[{"path":"a","old":null}]}'
    )
