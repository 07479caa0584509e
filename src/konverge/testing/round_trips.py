"""Round trips between the versions of a custom resource, for every object that its schemas allow.

    def test_versions():
        assert_round_trips(WebAppV1, WebApp)

Objects are drawn in each version as the API server would accept them (with a status), converted to the hub and back, or
from the hub and back, and compared as the server would show them: with its defaults, without what it prunes. An object
that does not survive is shrunk to the smallest such object. What a conversion makes must also be valid in its version:
no server checks it, and the next update of the object would be refused. Needs Hypothesis (`konverge[test]`).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from konverge.objects.custom import preserved
from konverge.objects.custom.conversion import Conversions
from konverge.objects.custom.definition import lone_crd_dict
from konverge.objects.custom.versions import Kind

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from konverge.apiserver.crd.serving.strategy import CustomKind

Obj = dict[str, Any]
Fields = Mapping[Kind, Mapping[str, "SearchStrategy[Any]"]]


class RoundTripLoss(AssertionError):
    """A conversion loses something, fails, or makes an object that its version refuses."""


def assert_round_trips(
    *classes: Kind, hub: Kind | None = None, fields: Fields | None = None, examples: int | None = None
) -> None:
    """Every object of every version survives its conversion and the way back. Raises RoundTripLoss.

    assert_round_trips(WebAppV1, WebApp, fields={WebApp: {"spec.image": st.sampled_from(["nginx:1.27"])}})

    `fields` are strategies for some fields of a class, by path, as in `konverge.testing.strategies.objects`;
    `examples` is the number of objects for each way (as in the settings of Hypothesis by default).
    """
    conversions = Conversions(*classes, hub=hub)
    for cls in classes:
        if cls is not conversions.hub:
            for source, over in ((conversions.hub, cls), (cls, conversions.hub)):
                _Way(conversions, source, over).check((fields or {}).get(source), examples)


class _Way:
    """From one version to another and back."""

    def __init__(self, conversions: Conversions, source: Kind, over: Kind) -> None:
        self._conversions = conversions
        self._source, self._over = source, over
        self._kind, self._over_kind = _kind(source), _kind(over)

    def check(self, fields: Mapping[str, SearchStrategy[Any]] | None, examples: int | None) -> None:
        from hypothesis import HealthCheck, Phase, given, settings

        from konverge.testing.strategies import objects_of_crd

        drawn = objects_of_crd(_definition(self._source), version=self._source.resource.version, fields=fields)
        options: dict[str, Any] = {} if examples is None else {"max_examples": examples}
        phases = [phase for phase in Phase if phase is not Phase.explain]  # which costs more than all the others
        quiet = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]

        @settings(deadline=None, report_multiple_bugs=False, suppress_health_check=quiet, phases=phases, **options)
        @given(obj=drawn)
        def survives(obj: Obj) -> None:
            self._check_one(obj)

        survives()

    def _check_one(self, obj: Obj) -> None:
        shown = self._kind.present(copy.deepcopy(obj))
        there = self._converted(shown, self._over)
        if errors := [str(error) for error in self._over_kind.errors_of_new(copy.deepcopy(there))]:
            raise self._loss(obj, f"{self._over.__name__} refuses what it becomes: {'; '.join(errors)}", there)
        there = self._over_kind.present(there)
        back = self._kind.present(self._converted(there, self._source))
        if differences := preserved.differences(back, shown, {}):
            raise self._loss(obj, "; ".join(map(_described, differences)), there)

    def _converted(self, obj: Obj, target: Kind) -> Obj:
        try:
            return self._conversions.convert(obj, target.resource.api_version)
        except Exception as error:
            raise self._loss(obj, f"{type(error).__name__}: {error}") from error

    def _loss(self, obj: Obj, what: str, there: Obj | None = None) -> RoundTripLoss:
        import yaml

        way = f"{self._source.__name__} → {self._over.__name__} → {self._source.__name__}"
        parts = [f"{way}: {what}", "the smallest object:", yaml.safe_dump(obj, sort_keys=False).rstrip()]
        if there is not None:
            parts += [f"as {self._over.__name__}:", yaml.safe_dump(there, sort_keys=False).rstrip()]
        return RoundTripLoss("\n".join(parts))


def _definition(cls: Kind) -> Obj:
    """Without subresources: then the status is a part like the others, drawn and validated."""
    definition = lone_crd_dict(cls)
    for version in definition["spec"]["versions"]:
        version.pop("subresources", None)
    return definition


def _kind(cls: Kind) -> CustomKind:
    from konverge.apiserver.crd.serving.strategy import CustomKind

    definition = _definition(cls)
    return CustomKind(definition, definition["spec"]["versions"][0])


def _described(difference: preserved.Difference) -> str:
    path = "".join(f".{step}" if isinstance(step, str) else f"[{step}]" for step in difference["at"]).lstrip(".")
    if "items" in difference:
        pairs = "; ".join(f"{actual!r} becomes {base!r}" for base, actual in difference["items"])
        return f"{path}: {pairs}"
    before, after = (repr(difference[side]) if side in difference else "absent" for side in ("is", "was"))
    return f"{path}: {before} becomes {after}"
