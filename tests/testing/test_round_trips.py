"""`assert_round_trips`: conversions that lose something are found, with the smallest object that shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.objects import CustomResource, Maximum, Minimum, Model, NoStatus, converts
from konverge.testing import RoundTripLoss, assert_round_trips, strategies
from tests.objects.pools import Pool, PoolV1, PoolV3

pytestmark = pytest.mark.spec("R-74")


class OldSpec(Model):
    minutes: Annotated[int, Minimum(0), Maximum(1000)] = 0
    note: str = ""


class NewSpec(Model):
    seconds: Annotated[int, Minimum(0), Maximum(60000)] = 0
    note: str = ""


class State(Model):
    phase: str = ""


Pair = tuple[type[CustomResource[OldSpec, State]], type[CustomResource[NewSpec, State]]]


def timers(
    up: Callable[[OldSpec], NewSpec], down: Callable[[NewSpec], OldSpec], *, status: bool = True, preserve: bool = False
) -> Pair:
    class Old(CustomResource[OldSpec, State], group="t.example.com", version="v1", kind="Timer", storage=False):
        pass

    class New(CustomResource[NewSpec, State], group="t.example.com", version="v2", kind="Timer"):
        pass

    def states(obj: Any) -> dict[str, Any]:
        return {"status": obj.status} if status else {}

    converts(Old, New)(lambda old: New(spec=up(old.spec), **states(old)))
    converts(New, Old, preserve=preserve)(lambda new: Old(spec=down(new.spec), **states(new)))
    return Old, New


def to_seconds(old: OldSpec) -> NewSpec:
    return NewSpec(seconds=old.minutes * 60, note=old.note)


def to_minutes(new: NewSpec) -> OldSpec:
    return OldSpec(minutes=new.seconds // 60, note=new.note)


def test_versions_that_keep_what_they_cannot_say() -> None:
    assert_round_trips(PoolV1, Pool, PoolV3, examples=15)
    assert_round_trips(*timers(to_seconds, to_minutes, preserve=True), examples=15)


def test_the_smallest_object_that_is_lost_is_shown() -> None:
    with pytest.raises(RoundTripLoss) as caught:
        assert_round_trips(*timers(to_seconds, to_minutes))
    text = str(caught.value)
    assert "New → Old → New: spec.seconds: 1 becomes 0" in text
    assert "  seconds: 1\n" in text


def test_fields_choose_what_is_drawn() -> None:
    old, new = timers(to_seconds, to_minutes)
    assert_round_trips(old, new, fields={new: {"spec.seconds": st.sampled_from([0, 60, 120])}})


def test_a_field_that_one_direction_forgets() -> None:
    forgetful = timers(lambda old: NewSpec(seconds=old.minutes * 60), to_minutes, preserve=True)
    with pytest.raises(RoundTripLoss, match=r"Old → New → Old: spec.note: '.' becomes ''"):
        assert_round_trips(*forgetful)


def test_a_status_that_is_forgotten() -> None:
    with pytest.raises(RoundTripLoss, match=r"status.phase: '.' becomes"):
        assert_round_trips(*timers(to_seconds, to_minutes, status=False))


def test_what_the_other_version_would_refuse() -> None:
    old, new = timers(to_seconds, lambda new: OldSpec(minutes=new.seconds, note=new.note))
    with pytest.raises(RoundTripLoss, match=r"Old refuses what it becomes: .*spec.minutes.*less than or equal to 1000"):
        assert_round_trips(old, new, fields={new: {"spec": st.just({"seconds": 5000})}})


def test_a_function_that_fails() -> None:
    old, new = timers(to_seconds, lambda new: OldSpec(minutes=new.seconds // 0))
    with pytest.raises(RoundTripLoss, match="ZeroDivisionError"):
        assert_round_trips(old, new)


class LampSpec(Model):
    on: bool = False


class Lamp(CustomResource[LampSpec, NoStatus], group="t.example.com", version="v1", storage=False):
    """Stored in another version, which is not here."""


@given(lamp=strategies.objects(Lamp))
def test_a_class_whose_version_is_not_stored_has_objects_too(lamp: Lamp) -> None:
    assert lamp.spec.on in (True, False)
