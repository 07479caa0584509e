"""This release's operators on what the first release left: nothing restarts, nothing is lost, nothing is written twice.

With the definitions of then, as after `helm upgrade`, which leaves those in `crds/` alone, and with those of now.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
from typing import Any

import pytest

from konverge.runtime.owners import ADOPT_BY
from tests.operators.first_release.upgrade import (
    DEFINITIONS,
    HELM,
    NEW,
    OLD,
    SIMULATED,
    Key,
    Obj,
    Upgrade,
    an_upgrade,
    recorded,
)
from tests.operators.wukong.test_killed import Mortal

pytestmark = [pytest.mark.virtual, pytest.mark.limit(120)]
CASES = [
    *(pytest.param("nacos", which, marks=pytest.mark.spec("N-48")) for which in (OLD, HELM, NEW)),
    *(pytest.param("wukong", which, marks=pytest.mark.spec("W-27")) for which in (OLD, NEW)),
    *(pytest.param("webapp", which, marks=pytest.mark.spec("A-13")) for which in (OLD, NEW)),
]
READY = ("Running", "Stopped", "Succeeded")


def lost(before: Any, after: Any, path: str = "") -> list[str]:
    """What is no longer as it was. A field that is new has its default from the definition."""
    if isinstance(before, dict) and isinstance(after, dict):
        return [line for key in before for line in lost(before[key], after.get(key), f"{path}.{key}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [line for index, item in enumerate(before) for line in lost(item, after[index], f"{path}[{index}]")]
    return [] if before == after else [f"{path}: {before!r} became {after!r}"]


def declared(obj: Obj) -> Obj:
    """What is the user's of a custom resource, and what others rely on."""
    names = ("name", "uid", "generation", "labels", "annotations", "finalizers", "creationTimestamp")
    meta = {key: obj["metadata"][key] for key in names if key in obj["metadata"]}
    return {"metadata": meta, "spec": obj["spec"]}


def unmarked(key: Key, obj: Obj) -> Obj:
    """A child without what may change: disks get the mark by which a machine of the same name takes them up again,
    which the first release did not set, and one that it had put back from a snapshot gets its owner."""
    obj = copy.deepcopy(obj)
    if key[0] in ("/persistentvolumeclaims", "cdi.kubevirt.io/datavolumes"):
        obj["metadata"].get("annotations", {}).pop(ADOPT_BY, None)
        for name in ("managedFields", "resourceVersion", "ownerReferences"):
            obj["metadata"].pop(name, None)
        if not obj["metadata"].get("annotations"):
            obj["metadata"].pop("annotations", None)
    return obj


def changed_children(upgrade: Upgrade, before: dict[Key, Obj]) -> list[Key]:
    """Those that are not what they were, down to the revision."""
    own, after = upgrade.own(), upgrade.objects()
    both = (before.keys() & after.keys()) - own.keys()
    return [key for key in both if unmarked(key, before[key]) != unmarked(key, after[key])]


def test_fields_that_are_lost_are_seen() -> None:
    before = {"a": [{"b": 1}], "c": {}}
    assert lost(before, {"a": [{"b": 1, "new": 0}], "c": {"d": 1}, "e": 2}) == []
    assert lost(before, {"a": [{"b": 2}], "c": {}}) == [".a[0].b: 1 became 2"]
    assert lost(before, {"a": [{"b": 1}, {}]}) == [".a: [{'b': 1}] became [{'b': 1}, {}]", ".c: {} became None"]


@pytest.mark.spec("N-48", "W-27", "A-13")
def test_the_recording_is_of_the_first_release() -> None:
    """Recorded again with a later one, it would prove nothing."""
    definitions = {
        obj["metadata"]["name"]: [version["name"] for version in obj["spec"]["versions"]]
        for name in ("nacos", "wukong", "webapp")
        for table, data in recorded(name)[1]
        if table == DEFINITIONS and SIMULATED not in data
        for obj in [json.loads(data)]
    }
    assert definitions == {
        "nacos.nacos.io": ["v1alpha1"],
        "webapps.apps.konverge.dev": ["v1"],
        "wukongs.vm.novasphere.dev": ["v1alpha1"],
        "wukongsnapshots.vm.novasphere.dev": ["v1alpha1"],
    }
    assert b"kubeConditions" in dict(recorded("nacos")[1])[DEFINITIONS]
    assert b"networkPolicy" not in dict(recorded("nacos")[1])[DEFINITIONS]


@pytest.mark.parametrize(("name", "definitions"), CASES)
async def test_nothing_restarts_and_nothing_is_written_twice(name: str, definitions: str) -> None:
    async with an_upgrade(name, definitions) as upgrade:
        own, before, revision = upgrade.own(), upgrade.objects(), upgrade.revision
        async with upgrade.operating():
            await upgrade.rest()
            now, after = upgrade.own(), upgrade.objects()
            assert [line for key in own for line in lost(declared(own[key]), declared(now[key]), str(key))] == []
            assert {obj["status"]["phase"] for obj in now.values()} <= set(READY)
            assert before.keys() == after.keys(), "nothing was made or deleted"
            assert changed_children(upgrade, before) == []
            assert {key: count for key, count in upgrade.stored(revision).items() if count > 1} == {}
            assert await upgrade.events() == []
            upgrade.writes()
            await upgrade.rest(1200.0)
            assert upgrade.writes() == [], "at rest"
            assert [server.writes for server in upgrade.databases.servers.values() if server.writes] == []
        revision = upgrade.revision
        async with upgrade.operating():
            await upgrade.rest()
            assert upgrade.stored(revision) == {}, "the second start"
            told = upgrade.writes()
            assert told == [] or (definitions == OLD and len(set(told)) == len(told)), "one try for fields of now"


@pytest.mark.spec("W-27")
@pytest.mark.parametrize("definitions", [OLD, NEW])
async def test_processes_that_are_killed_after_each_write_come_to_the_same(definitions: str) -> None:
    async with an_upgrade("wukong", definitions) as upgrade:
        before, revision, processes = upgrade.objects(), upgrade.revision, 0
        while True:
            mortal = Mortal(upgrade.client)
            async with upgrade.operating(mortal):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(120.0):
                        await mortal.calls.dead.wait()
            if not mortal.calls.dead.is_set():
                break
            processes += 1
        assert processes == len(upgrade.stored(revision)) > 10, "one for each disk"
        assert changed_children(upgrade, before) == []
        assert before.keys() == upgrade.objects().keys()
