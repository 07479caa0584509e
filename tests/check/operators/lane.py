"""What `make check-operators` checks of Nacos and Wukong: three kinds of faults at every write, generated operations.

`operations` are what users do to a custom resource, made from its definition (`konverge.check.inputs`): each is one
step of a run. The three kinds of faults are those that operators are known to break on: they end between two writes,
a write fails or its answer is lost, and what they read is old.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from konverge.check.campaign import Campaign, Options, Outcome
from konverge.check.inputs import campaign
from konverge.check.inputs.samples import placed
from konverge.check.model import Crash, Lag, Obj, Plan, Refuse
from konverge.check.planning import Planned
from konverge.check.plans import all_plans
from konverge.check.plans.errors import ANSWERS
from konverge.check.plans.length import Length
from konverge.check.plans.writes import changes_of, effective, place_of
from konverge.check.reference import Reference
from konverge.check.subjects import Checked, InThisProcess, declaration_of, from_target
from konverge.check.workload import basic

NACOS: dict[str, tuple[str, ...]] = {
    "single": ("nacos-single",),
    "mysql": ("nacos-cluster-mysql", "nacos-cluster"),
    "postgres": ("nacos-pg-database", "nacos-pg-admin", "nacos-pg"),
    "content": ("nacos-single", "NacosNamespace/dev", "NacosConfig/shop", "NacosUser/shop", "shop-reads-dev"),
}
WUKONG: dict[str, tuple[str, ...]] = {
    "smallest": ("smallest",),
    "ubuntu": ("ubuntu-login", "ubuntu"),
    "static": ("static",),
    "windows": ("windows-answers", "windows"),
    "precious": ("precious",),
}
SAMPLES = {"nacos": NACOS, "wukong": WUKONG}
"""Names of objects among the samples of an operator, in the order in which a user creates them."""
CHANGED = {"content": ("NacosNamespace", "NacosConfig", "NacosUser", "NacosPermission")}
"""Kinds whose objects the operations of a sample change, where they are not all: other samples have the others.

Templates and quotas of machines are in none: they are meant to have no effect by themselves.
"""
PlansOf = Callable[[Reference], Sequence[Plan]]
ENDLESS = 1e9
"""Seconds of a budget: a part is run to its end."""

Part = tuple[str, str, int, int]
"""An operator, a sample, and of its plans one of so many shares: half a minute of CPU time."""
OPERATIONS: dict[str, list[Part]] = {
    "nacos": [
        *(("nacos", sample, part, 8) for sample in NACOS if sample not in CHANGED for part in range(8)),
        ("nacos", "content", 0, 1),
    ],
    "wukong": [("wukong", sample, part, 3) for sample in WUKONG for part in range(3)],
}
FAULTS: dict[str, list[Part]] = {
    "nacos": [("nacos", "mysql", part, 24) for part in range(24)],
    "wukong": [("wukong", "smallest", part, 12) for part in range(12)],
}
"""One sample of each operator has its every write disturbed."""


def chosen(parts: dict[str, list[Part]], number: str) -> list[Part]:
    """All parts, or with a number one of each operator: whoever counts on comes to all of them."""
    if not number:
        return [part for of_one in parts.values() for part in of_one]
    return [of_one[int(number) % len(of_one)] for of_one in parts.values()]


class Lane:
    """One sample of one operator, checked as `konverge check` does: with the operator's own permissions."""

    def __init__(self, operator: str, sample: str) -> None:
        self._checked: Checked = from_target(operator)
        by_name: dict[str, Obj] = {}
        for obj in self._checked.samples:
            name = obj["metadata"]["name"]
            by_name |= {name: obj, f"{obj['kind']}/{name}": obj}
        self.samples: list[Obj] = [placed(by_name[name], "default") for name in SAMPLES[operator][sample]]
        kinds = CHANGED.get(sample, ())
        definitions = self._checked.definitions
        self._changed = [item for item in definitions if not kinds or item["spec"]["names"]["kind"] in kinds]

    def operations(self, seed: int = 0) -> list[Plan]:
        """Runs of changes of the sample."""
        return list(campaign(self.samples, self._changed, seed))

    def faults(self, reference: Reference) -> list[Plan]:
        """What is derived from the reference, and three kinds of faults at each write of it."""
        plans = [*all_plans(reference), *at_every_write(reference)]
        return list({msgspec.json.encode(msgspec.structs.replace(plan, seconds=0.0)): plan for plan in plans}.values())

    def check_operations(self, part: int, parts: int) -> Outcome:
        return self._check(lambda reference: self.operations()[part::parts])

    def check_faults(self, part: int, parts: int) -> Outcome:
        return self._check(lambda reference: self.faults(reference)[part::parts])

    def _check(self, plans: PlansOf) -> Outcome:
        operator = self._checked.operator
        assert operator is not None
        return Campaign(
            self._checked.subject,
            self._checked.setup,
            basic(self.samples),
            InThisProcess(declaration_of(operator)),
            Options(budget=ENDLESS, shrink=False, least="medium"),
            planner=lambda reference, only, seed: Planned(list(plans(reference))),
        ).check()


def number_of(plans: Sequence[Plan]) -> int:
    """Operations in these plans: all steps but the creation at the beginning of each."""
    return sum(len(plan.steps or ()) - 1 for plan in plans)


def at_every_write(reference: Reference) -> Iterator[Plan]:
    """The operator ends after it; it meets each error that there is for its verb; its watches do not show it, nor what
    others do to the same kind of objects afterwards, before the next rest."""
    length = Length(reference)
    for exchange in effective(reference):
        place = place_of(exchange)
        yield length.shortened(Plan("crash", (Crash(place),)))
        for answer in ANSWERS.get(exchange.verb, ()):
            yield length.shortened(Plan("errors", (Refuse(place, answer),)))
        for change in changes_of(reference, exchange)[:1]:
            yield length.shortened(Plan("stale", (Lag(change.ref.resource, change.moment),)))
