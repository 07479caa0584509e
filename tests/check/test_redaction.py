"""What of a Secret is not shown."""

from __future__ import annotations

import pytest

from konverge.check.model import Alarm
from konverge.check.redaction import HIDDEN, is_secret, shown_alarm, shown_object

APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
HANDLED = "kopf.zalando.org/last-handled-configuration"


@pytest.mark.spec("K-145")
@pytest.mark.parametrize(
    ("path", "secret"),
    [
        ("data", True),
        ("data.tls.crt", True),
        ("stringData.password", True),
        ("data[0]", True),
        ("", True),
        ("metadata.annotations", True),
        (f"metadata.annotations.{APPLIED}", True),
        (f"metadata.annotations.{HANDLED}", True),
        ("metadata.annotations.example.dev/Last-Applied", True),
        ("metadata.annotations.a", False),
        ("metadata.labels", False),
        ("type", False),
        ("status.data", False),
    ],
)
def test_fields_that_have_values_of_a_secret(path: str, secret: bool) -> None:
    assert is_secret("secrets", path) is secret
    assert is_secret("/secrets", path) is secret
    assert not is_secret("configmaps", path)
    assert not is_secret("example.dev/secrets", path)


@pytest.mark.spec("K-145")
def test_an_alarm_and_an_object_are_shown_without_them() -> None:
    alarm = Alarm(
        oracle="state",
        severity="high",
        object="secrets default/a",
        field="data.b",
        sentence="s",
        expected="c2VjcmV0",
        actual="b3RoZXI=",
    )
    shown = shown_alarm(alarm)
    assert (shown.expected, shown.actual, shown.group, shown.sentence) == (HIDDEN, HIDDEN, alarm.group, "s")
    other = Alarm(oracle="state", severity="high", object="secrets default/a", field="type", sentence="", actual="b")
    assert shown_alarm(other) is other

    annotations = {APPLIED: "{c2VjcmV0}", HANDLED: "{c2VjcmV0}", "a": "b"}
    obj = {"kind": "Secret", "metadata": {"name": "a", "annotations": annotations}, "data": {"b": "c2VjcmV0"}}
    assert shown_object("secrets", obj) == {
        "kind": "Secret",
        "metadata": {"name": "a", "annotations": {"a": "b"}},
        "data": {"b": HIDDEN},
    }
    assert shown_object("configmaps", obj) == obj


@pytest.mark.spec("K-145")
def test_an_object_without_annotations_is_shown_as_it_is() -> None:
    for obj in ({"kind": "Secret"}, {"metadata": {"annotations": None}}, {"metadata": {"name": "a"}, "data": None}):
        assert shown_object("secrets", obj) == obj
