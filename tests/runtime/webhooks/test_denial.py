"""A refusal: the text that a user reads, and the status that a program reads."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects.kinds.core_v1 import Pod
from konverge.runtime.webhooks import Denied, FieldError
from konverge.runtime.webhooks.denial import Problem
from tests.runtime.webhooks.pools import Pool

pytestmark = pytest.mark.spec("R-66")

ONE, TWO = FieldError("spec.a", "one"), FieldError("spec.b", "two", value=2)


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        ("Invalid", "Invalid value: 7: why"),
        ("Required", "Required value: why"),
        ("Forbidden", "Forbidden: why"),
        ("NotSupported", "Unsupported value: 7: why"),
        ("Duplicate", "Duplicate value: 7: why"),
        ("NotFound", "Not found: 7: why"),
        ("TooLong", "Too long: why"),
        ("TooMany", "Too many: 7: why"),
    ],
)
def test_a_field_error_shows_the_value_where_the_api_server_does(problem: Problem, text: str) -> None:
    error = FieldError("spec.x", "why", problem, 7)
    assert (error.body, str(error)) == (text, f"spec.x: {text}")
    assert FieldError("spec.x", "why", problem).body == text.replace(": 7", "")
    assert FieldError("spec.x", problem=problem, value=7).body == text.removesuffix(": why")


@pytest.mark.parametrize(
    ("denied", "text", "code", "reason"),
    [
        (Denied(), "", 403, "Forbidden"),
        (Denied("closed"), "closed", 403, "Forbidden"),
        (Denied("closed", code=400), "closed", 400, "BadRequest"),
        (Denied("closed", code=409), "closed", 409, "Conflict"),
        (Denied("closed", code=418), "closed", 418, ""),
        (Denied("closed", code=409, reason="Taken"), "closed", 409, "Taken"),
        (Denied("closed", ONE), "closed", 422, "Invalid"),
        (Denied(ONE), "spec.a: Invalid value: one", 422, "Invalid"),
        (Denied(ONE, ONE), "spec.a: Invalid value: one", 422, "Invalid"),
        (Denied(ONE, TWO), "[spec.a: Invalid value: one, spec.b: Invalid value: 2: two]", 422, "Invalid"),
        (Denied(ONE, code=403), "spec.a: Invalid value: one", 403, "Forbidden"),
    ],
)
def test_a_refusal_has_a_text_and_a_code(denied: Denied, text: str, code: int, reason: str) -> None:
    assert (str(denied), denied.code, denied.reason) == (text, code, reason)


@pytest.mark.parametrize("code", [1, 200, 399])
def test_a_code_that_is_no_refusal_is_an_error(code: int) -> None:
    with pytest.raises(ValueError, match=f"^a refusal has an HTTP status of 400 or more, not {code}$"):
        Denied("closed", code=code)


def cause(path: str, message: str) -> dict[str, Any]:
    return {"reason": "FieldValueInvalid", "message": message, "field": path}


def test_the_status_of_a_plain_refusal() -> None:
    assert Denied("closed").status(Pool.resource, "p") == {
        "status": "Failure",
        "code": 403,
        "reason": "Forbidden",
        "message": "closed",
    }
    assert Denied(code=409).status(Pool.resource, "p") == {"status": "Failure", "code": 409, "reason": "Conflict"}


def test_the_status_of_field_errors_names_the_object_and_each_cause_once() -> None:
    assert Denied(ONE, TWO, ONE).status(Pool.resource, "p") == {
        "status": "Failure",
        "code": 422,
        "reason": "Invalid",
        "message": 'Pool.tests.konverge.dev "p" is invalid: [spec.a: Invalid value: one, '
        "spec.b: Invalid value: 2: two]",
        "details": {
            "name": "p",
            "group": "tests.konverge.dev",
            "kind": "Pool",
            "causes": [cause("spec.a", "Invalid value: one"), cause("spec.b", "Invalid value: 2: two")],
        },
    }


def test_the_status_says_nothing_that_is_empty() -> None:
    """A kind of the core has no group, and an object whose name is generated has no name yet."""
    status = Denied("closed", ONE).status(Pod.resource, "")
    assert status["message"] == 'closed: Pod "" is invalid: spec.a: Invalid value: one'
    assert status["details"] == {"kind": "Pod", "causes": [cause("spec.a", "Invalid value: one")]}
