"""The patterns of published bugs, each in a small operator: plans that know nothing of it find it, and find nothing in
the same operator without the mistake."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from konverge.check.model import Plan, Run, Step
from konverge.check.oracles import judge
from konverge.check.plans import all_plans
from konverge.check.reference import Reference
from tests.check.small import (
    CLAIMS,
    CONFIGS,
    SECRETS,
    SETS,
    THINGS,
    Api,
    Caches,
    Obj,
    Reconcile,
    Small,
    create,
    delete,
    reference,
    run,
)

RECREATE = (create("create", size=1), delete(), create("again", size=2))


def owned(thing: Obj, obj: Obj) -> Obj:
    owner = {"apiVersion": "demo.dev/v1", "kind": "Thing", "name": thing["metadata"]["name"]}
    references = [{**owner, "uid": thing["metadata"]["uid"]}]
    return {**obj, "metadata": {"name": thing["metadata"]["name"], "ownerReferences": references}}


def stateful_set(thing: Obj) -> Obj:
    labels = {"app": thing["metadata"]["name"]}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "x"}]}}
    return owned(thing, {"spec": {"selector": {"matchLabels": labels}, "serviceName": "x", "template": pod}})


def claim(thing: Obj) -> Obj:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": thing["metadata"]["name"]}, "spec": spec}


def finalized(path: str, make: Callable[[Obj], Obj], *, careful: bool) -> Reconcile:
    """Deletes what belongs to a Thing that is being deleted. The mistake: it trusts its cache, and deletes by name."""

    async def reconcile(api: Api, caches: Caches) -> None:
        for name, thing in caches[THINGS].items():
            if careful:
                live = await api.get(THINGS, name)
                if live is None or live["metadata"]["uid"] != thing["metadata"]["uid"]:
                    continue
                thing = live
            if thing["metadata"].get("deletionTimestamp"):
                await api.delete(path, name)
                if thing["metadata"].get("finalizers"):
                    await api.update(THINGS, {**thing, "metadata": {**thing["metadata"], "finalizers": []}})
                continue
            if not thing["metadata"].get("finalizers"):
                await api.update(THINGS, {**thing, "metadata": {**thing["metadata"], "finalizers": ["demo.dev/x"]}})
            if name not in caches[path] and await api.get(path, name) is None:
                await api.create(path, make(thing))

    return reconcile


def deletes_live_set(*, careful: bool) -> Small:
    """rabbitmq/cluster-operator #648: an old view of the custom resource deletes a StatefulSet that lives."""
    return Small(finalized(SETS, stateful_set, careful=careful), (THINGS, SETS))


def deletes_live_claim(*, careful: bool) -> Small:
    """zookeeper-operator #312, cass-operator K8SSAND-559: an old deletionTimestamp deletes claims with their data."""
    return Small(finalized(CLAIMS, claim, careful=careful), (THINGS, CLAIMS))


class Remembers:
    """Cleans up only what it saw going: a Thing that was recreated unseen keeps the configuration of the old one."""

    def __init__(self, *, careful: bool) -> None:
        self._careful = careful
        self._known: set[str] = set()

    async def reconcile(self, api: Api, caches: Caches) -> None:
        for name in self._known - caches[THINGS].keys():
            await api.delete(CONFIGS, name)
        self._known = set(caches[THINGS])
        for name, thing in caches[THINGS].items():
            size = str(thing["spec"]["size"])
            present = await api.get(CONFIGS, name)
            if present is None:
                await api.create(CONFIGS, {"metadata": {"name": name}, "data": {"size": size}})
            elif self._careful and present["data"]["size"] != size:
                await api.update(CONFIGS, {**present, "data": {"size": size}})


def keeps_old_configuration(*, careful: bool) -> Small:
    return Small(Remembers(careful=careful).reconcile, (THINGS,))


def forgets_to_resize(*, careful: bool) -> Small:
    """rabbitmq/cluster-operator #782: what is resized is known only from what was deleted before."""

    async def reconcile(api: Api, caches: Caches) -> None:
        for name, thing in caches[THINGS].items():
            size = str(thing["spec"]["size"])
            template, disk = await api.get(CONFIGS, f"{name}-set"), await api.get(CONFIGS, f"{name}-disk")
            if disk is None:
                disk = await api.create(CONFIGS, {"metadata": {"name": f"{name}-disk"}, "data": {"size": size}})
            if template is not None and template["data"]["size"] != size:
                await api.delete(CONFIGS, f"{name}-set")
                await api.update(CONFIGS, {**disk, "data": {"size": size}})
                template = None
            if template is None:
                if careful and disk["data"]["size"] != size:
                    disk = await api.get(CONFIGS, f"{name}-disk") or disk
                    await api.update(CONFIGS, {**disk, "data": {"size": size}})
                await api.create(CONFIGS, {"metadata": {"name": f"{name}-set"}, "data": {"size": size}})

    return Small(reconcile)


RESIZE = (create("create", size=1), create("grow", size=2))
CASES: dict[str, tuple[Any, tuple[Step, ...], str]] = {
    "rabbitmq #648": (deletes_live_set, RECREATE, "stale"),
    "zookeeper #312": (deletes_live_claim, RECREATE, "stale"),
    "unseen recreation": (keeps_old_configuration, RECREATE, "gap"),
    "rabbitmq #782": (forgets_to_resize, RESIZE, "crash"),
}


def wrong(made: Reference, performed: Run) -> list[str]:
    return [alarm.sentence for alarm in judge(performed, made) if alarm.severity != "low"]


@pytest.mark.spec("K-18")
@pytest.mark.parametrize("case", CASES)
def test_a_published_pattern_is_found_without_knowing_it(case: str) -> None:
    make, steps, pattern = CASES[case]
    made = reference(lambda: make(careful=False), steps)
    plans = all_plans(made, only={pattern})[:12]
    assert plans
    for plan in plans:
        performed = run(lambda: make(careful=False), steps, plan)
        if wrong(made, performed):
            return
    raise AssertionError(f"{len(plans)} plans, nothing found")


@pytest.mark.spec("K-18")
@pytest.mark.parametrize("case", CASES)
def test_nothing_is_found_without_the_mistake(case: str) -> None:
    make, steps, pattern = CASES[case]
    made = reference(lambda: make(careful=True), steps)
    plans: list[Plan] = all_plans(made, only={pattern})[:5] + all_plans(made, only={"own-writes", "time"})[:2]
    assert len(plans) > 2
    missed = 0
    for plan in plans:
        performed = run(lambda: make(careful=True), steps, plan)
        missed += performed.missed
        assert not wrong(made, performed), plan
    assert missed < len(plans)


async def keep_what_was_asked_for(api: Api, caches: Caches) -> None:
    """A Secret for those who ask for one; it stays when they no longer do."""
    for name, thing in caches[THINGS].items():
        if await api.get(CONFIGS, name) is None:
            await api.create(CONFIGS, {"metadata": {"name": name}})
        if thing["spec"].get("secret") and await api.get(SECRETS, name) is None:
            await api.create(SECRETS, {"metadata": {"name": name}})


@pytest.mark.spec("K-18")
def test_what_a_state_leaves_behind_is_not_missed_when_it_passed_unseen() -> None:
    steps = (create("create"), create("on", secret=True), create("off"))
    made = reference(lambda: Small(keep_what_was_asked_for), steps)
    assert "secrets default/a" in made.run.checkpoints[-1].state
    plans = all_plans(made, only={"gap"})
    assert plans
    for plan in plans:
        performed = run(lambda: Small(keep_what_was_asked_for), steps, plan)
        assert not performed.missed
        assert "secrets default/a" not in performed.checkpoints[-1].state
        assert not wrong(made, performed)
