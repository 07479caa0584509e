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
SETS = "apps/statefulsets default/a"


def secret(name: str, **data: str) -> dict[str, Any]:
    encoded = {key: b64encode(value.encode()).decode() for key, value in data.items()}
    return obj("Secret", name, apiVersion="v1", data=encoded)


def state(password: str, init: dict[str, Any] | None, **status: Any) -> dict[str, Any]:
    thing = obj("Thing", apiVersion="example.dev/v1", status=status)
    return {KEY: thing, LOGIN: secret("login", password=password), **({COPY: init} if init else {})}


def init(text: str) -> dict[str, Any]:
    return secret("a-init", userdata=f"#cloud-config\npassword: {text}\n")


def workload(**container: Any) -> dict[str, Any]:
    """A StatefulSet that has nothing of the Secret but a reference, and whatever its container is given."""
    login = {"name": "LOGIN", "valueFrom": {"secretKeyRef": {"name": "login", "key": "password"}}}
    container = {"name": "c", "image": "docker.io/postgres:16", "env": [login], **container}
    template = {"metadata": {"labels": {"app": "postgres"}}, "spec": {"containers": [container]}}
    return obj("StatefulSet", spec={"template": template})


def kept(
    value: str, text: str, *others: dict[str, Any], key: str = SETS, now: str = "", since: dict[str, Any] | None = None
) -> list[str]:
    """What is said of an object of the operator that has `text` before a rotation, and `now` after it.

    Others are beside it before, and `since` afterwards.
    """
    there = {f"{item['kind'].lower()}s default/{item['metadata']['name']}": item for item in others}
    first = {**state(value, None), **there, key: workload(args=[text])}
    after = {**state(f"{value}2", None), **(since or {}), key: workload(args=[now or text])}
    login = (Step("create", (Apply(THING),)), Step("Secret login rotated", (Apply(after[LOGIN]),)))
    history = History(login, "input")
    history.run.plan = Plan("input", steps=history.run.steps)
    history.change("ADDED", key).rest(first).rest(after)
    return [alarm.object for alarm in copies(history.run, SANE)]


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


@pytest.mark.spec("K-143")
@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("postgres", False),
        ("abcdefghijklmno", False),
        ("abcdefghijklmnop", True),
        ("123456789012345", False),
        ("1234567890123456", True),
        ("postgres1", True),
        ("change-me", True),
        ("hunter", False),
    ],
)
def test_a_plain_word_is_no_copy(value: str, found: bool) -> None:
    assert kept(value, f"--with={value}") == [SETS] * found


@pytest.mark.spec("K-143")
def test_what_objects_are_called_is_no_copy() -> None:
    assert kept("shop-db", "--with=shop-db") == [SETS]
    named = obj("Service", "shop-db")
    assert kept("shop-db", "shop-db", named) == []
    assert kept("shop-db", "shop-db", since={"services default/shop-db": named}) == [SETS], "by another's new name"
    assert kept("shop-db", "shop-db", obj("Service", "x", metadata={"labels": {"app": "shop-db"}})) == []
    assert kept("shop-db", "shop-db", obj("Service", "x", metadata={"annotations": {"app": "shop-db"}})) == [SETS]


@pytest.mark.spec("K-143")
@pytest.mark.parametrize(
    ("value", "found"),
    [("shop-db", False), ("team_1", False), ("v1.2.3", False), ("v1.2.4", True), ("sidecar-1", True)],
)
def test_nor_are_the_labels_and_images_of_its_pods(value: str, found: bool) -> None:
    pods = {"containers": [{"name": "sidecar-1", "image": "registry.example.dev/team_1:v1.2.3"}]}
    template = {"metadata": {"labels": {"app": "shop-db"}}, "spec": pods}
    assert kept(value, value, obj("Deployment", "x", spec={"template": template})) == [SETS] * found


@pytest.mark.spec("K-143")
def test_a_text_that_is_called_an_image_is_none() -> None:
    config = obj("ConfigMap", "x", data={"image": "shop-db", "labels": "shop-db"})
    assert kept("shop-db", "shop-db", config) == [SETS]


@pytest.mark.spec("K-143")
@pytest.mark.parametrize(
    ("value", "text", "found"),
    [
        ("db-user", "db-user", True),
        ("db-user", "postgres://db-user:x@host", True),
        ("db-user", "db-users", False),
        ("db-user", "mydb-user", False),
        ("db-user", "my-db-user", False),
        ("db-user", "db-user-0", False),
        ("db-user", "db-user_0", False),
        ("db-user", "db-user-0, db-user", True),
        ("db.user", "dbxuser", False),
        ("$ecret$", "x$ecret$x", True),
        ("secret$", "xsecret$", False),
        ("$ecrets", "$ecretsx", False),
    ],
)
def test_a_copy_is_a_whole_word(value: str, text: str, found: bool) -> None:
    assert kept(value, text) == [SETS] * found


@pytest.mark.spec("K-143")
def test_the_new_value_may_stand_in_the_middle_of_a_word() -> None:
    certificate = "-----END CERTIFICATE-----\n"
    assert kept(certificate, f"{certificate}-----BEGIN", now=f"{certificate}2-----BEGIN") == []
    assert kept("secret-1", "secret-1", now="xsecret-12x") == []


@pytest.mark.spec("K-143")
def test_what_runs_once_keeps_what_it_was_given() -> None:
    for key in ("batch/jobs default/a", "pods default/a"):
        assert kept("secret-1", "secret-1", key=key) == []
    for key in ("batch/cronjobs default/a", "apps/deployments default/a"):
        assert kept("secret-1", "secret-1", key=key) == [key]
