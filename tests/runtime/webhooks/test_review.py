"""What an admission function is asked: the parts of a review, and what is missing in it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from konverge.runtime.webhooks import Denied, FieldError, Review, UserInfo
from konverge.runtime.webhooks.review import AdmissionRequest
from tests.runtime.webhooks.pools import SPACE, Pool, pool

pytestmark = pytest.mark.spec("R-66")


def asked(**parts: Any) -> Review[Pool]:
    """A review as it arrives, with only these parts."""
    return Review(Pool, msgspec.json.decode(msgspec.json.encode(parts), type=AdmissionRequest))


def shown(review: Review[Pool]) -> tuple[Any, ...]:
    return (
        review.operation,
        review.name,
        review.namespace,
        review.subresource,
        review.dry_run,
        review.user,
        review.old and review.old.spec.most,
        review.new and review.new.spec.most,
        review.obj.spec.most,
    )


def test_a_review_of_a_test_has_what_its_objects_say() -> None:
    nobody = UserInfo()
    assert shown(Review.of(pool("a", most=4))) == ("CREATE", "a", SPACE, "", False, nobody, None, 4, 4)
    both = Review.of(pool("a", most=4), old=pool("a", most=3))
    assert shown(both) == ("UPDATE", "a", SPACE, "", False, nobody, 3, 4, 4)
    assert shown(Review.of(old=pool("b", most=3))) == ("DELETE", "b", SPACE, "", False, nobody, 3, None, 3)


def test_a_review_of_a_test_has_what_it_is_given() -> None:
    root = UserInfo(username="root", uid="1", groups=["admins"], extra={"scope": ["all"]})
    review = Review.of(pool(), operation="CONNECT", user=root, subresource="scale", dry_run=True)
    assert shown(review) == ("CONNECT", "p", SPACE, "scale", True, root, None, 3, 3)
    assert (review.warnings, review.errors, review.audit_annotations) == ([], [], {})


def test_a_review_of_a_test_needs_an_object() -> None:
    with pytest.raises(TypeError, match=r"^a review is about an object: give new, old or both$"):
        Review.of()


def test_objects_are_read_once_so_that_changes_stay() -> None:
    review = Review.of(pool(most=4), old=pool(most=3))
    assert review.new is review.new is review.obj
    assert review.old is review.old
    review.obj.spec.most = 9
    assert (review.new and review.new.spec.most, msgspec.json.decode(review.sent)["spec"]["most"]) == (9, 4)


@pytest.mark.parametrize("parts", [{}, {"object": None, "oldObject": None}], ids=["omitted", "null"])
def test_without_an_object_there_is_none_and_what_needs_it_is_refused(parts: dict[str, Any]) -> None:
    review = asked(operation="CONNECT", **parts)
    assert (review.new, review.old) == (None, None)
    with pytest.raises(Denied) as refused:
        _ = review.obj
    assert (str(refused.value), refused.value.code) == ("a request to CONNECT Pool has no object", 400)


@pytest.mark.parametrize("name", ["object", "oldObject"])
def test_an_object_that_the_class_cannot_read_is_refused_by_its_name(name: str) -> None:
    review = asked(operation="UPDATE", **{name: {"spec": {"most": "many"}}})
    with pytest.raises(Denied) as refused:
        _ = review.new or review.old
    assert refused.value.code == 400
    assert str(refused.value) == (
        f"the {name} is no Pool that the operator understands: Expected `int`, got `str` - at `$.spec.most`"
    )


def test_options_of_the_request_are_a_map_also_when_there_are_none() -> None:
    given = {"apiVersion": "meta.k8s.io/v1", "kind": "DeleteOptions", "propagationPolicy": "Foreground"}
    assert asked(operation="DELETE", options=given).options == given
    assert asked(options=None).options == {}
    assert asked().options == {}


def test_a_dry_run_is_one_only_where_the_server_says_so() -> None:
    assert [asked(**given).dry_run for given in ({}, {"dryRun": None}, {"dryRun": False}, {"dryRun": True})] == [
        False,
        False,
        False,
        True,
    ]


def test_errors_are_noted_with_what_is_wrong() -> None:
    review = Review.of(pool())
    review.error("spec.most")
    review.error("spec.most", "too many", value=None)
    review.error("spec.tags[0]", problem="Duplicate", value="a")
    assert review.errors == [
        FieldError("spec.most"),
        FieldError("spec.most", "too many", "Invalid", None),
        FieldError("spec.tags[0]", "", "Duplicate", "a"),
    ]
    assert [str(error) for error in review.errors] == [
        "spec.most: Invalid value",
        "spec.most: Invalid value: null: too many",
        'spec.tags[0]: Duplicate value: "a"',
    ]


def test_a_warning_is_one_line() -> None:
    review = Review.of(pool())
    review.warn(" least is deprecated,\n\tuse most ")
    assert review.warnings == ["least is deprecated, use most"]
