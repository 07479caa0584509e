"""What is copied from a Secret of the user follows it."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from konverge.check.model import Apply, Plan, Step
from konverge.check.oracles import judge
from konverge.check.oracles.copies import copies
from tests.check.oracles.histories import KEY, THING, History, obj, reference

LOGIN, COPY = "secrets default/login", "secrets default/a-init"


def secret(name: str, **data: str) -> dict[str, Any]:
    encoded = {key: b64encode(value.encode()).decode() for key, value in data.items()}
    return obj("Secret", name, apiVersion="v1", data=encoded)


def state(password: str, init: dict[str, Any] | None, **status: Any) -> dict[str, Any]:
    thing = obj("Thing", apiVersion="example.dev/v1", status=status)
    return {KEY: thing, LOGIN: secret("login", password=password), **({COPY: init} if init else {})}


def init(text: str) -> dict[str, Any]:
    return secret("a-init", userdata=f"#cloud-config\npassword: {text}\n")


SANE = reference(History().change("ADDED", COPY).rest(state("secret-1", init("secret-1"))))


def said(
    after: dict[str, Any],
    *,
    old: str = "secret-1",
    first: dict[str, Any] | None = None,
    by: str = "operator",
    beside: str = "another",
    **more: Any,
) -> list[str]:
    rotate = Step("Secret login rotated", (Apply(after[LOGIN]),), **more)
    given = (Apply({**THING, "spec": {"password": beside}}), Apply(secret("login", password=old)))
    history = History((Step("create", given), rotate), "input")
    history.run.plan = Plan("input", steps=history.run.steps)
    history.change("ADDED", COPY, by=by).rest(state(old, first or init(old))).rest(after)
    return [alarm.object for alarm in copies(history.run, SANE)]


@pytest.mark.spec("K-140")
def test_a_copy_that_keeps_the_old_value_is_said() -> None:
    assert said(state("secret-12", init("secret-12"))) == []
    assert said(state("secret-12", init("secret-1"))) == [COPY]
    rotated = secret("login", password="secret-12")
    run = History((Step("create", (Apply(THING),)), Step("Secret login rotated", (Apply(rotated),))), "input")
    run.run.plan = Plan("input", steps=run.run.steps)
    run.change("ADDED", COPY).rest(state("secret-1", init("secret-1"))).rest(state("secret-12", init("secret-1")))
    (alarm,) = (alarm for alarm in judge(run.run, SANE) if alarm.oracle == "copies")
    assert alarm.severity == "medium"
    assert alarm.sentence == f"{COPY} keeps the old value of password of {LOGIN}, which was rotated"


@pytest.mark.spec("K-140")
def test_in_plain_texts_as_well() -> None:
    config = obj("ConfigMap", "a-init", apiVersion="v1", data={"url": "https://secret-1@db"})
    assert said(state("secret-12", config), first=config) == [COPY]


@pytest.mark.spec("K-140")
def test_what_is_no_copy_of_the_operators_says_nothing() -> None:
    kept = state("secret-12", init("secret-1"))
    assert said(kept, by="user") == [], "another's"
    assert said(state("ab2", init("ab")), old="ab") == [], "by chance"
    assert said(state("secret-1", init("secret-1"))) == [], "not rotated"
    assert said(state("secret-12", None)) == [], "gone"
    assert said(kept, first=init("of its own")) == [], "none before"
    assert said(kept, beside="secret-1") == [], "of the custom resource"
    assert said(kept, expect="harmless") == [], "a mistake"
    assert said(state("secret-12", init("secret-1"), phase="Failed")) == [], "said"
