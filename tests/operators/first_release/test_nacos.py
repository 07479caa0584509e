"""Servers of the first release under this one: they are changed, scaled and deleted, and there is a way back."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import MergePatch
from konverge.objects import from_dict
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.networking_v1 import NetworkPolicy
from konverge.operators.nacos.resource import Nacos
from konverge.runtime import is_true
from tests.operators.first_release.upgrade import NEW, OLD, SPACE, Upgrade, an_upgrade

pytestmark = [pytest.mark.virtual, pytest.mark.limit(120), pytest.mark.spec("N-48")]
CHANGES: dict[str, dict[str, Any]] = {
    "embedded": {"env": [{"name": "JVM_XMS", "value": "1g"}]},
    "nacos-cluster": {"image": "nacos/nacos-server:v2.5.0"},
    "nacos-pg": {"replicas": 5},
    "nacos-single": {"volume": {"requests": {"storage": "20Gi"}}},
    "oldest": {"config": "a=2\n"},
}
"""One for each Nacos."""
OWN_SECRETS = {"nacos-cluster-mysql", "nacos-pg-admin", "nacos-pg-database"}
CLAIMS = {"db-embedded-0", "db-embedded-1", "db-embedded-2", "db-nacos-single-0"}


async def change(upgrade: Upgrade, name: str, **spec: Any) -> None:
    await upgrade.client.patch(Nacos, name, MergePatch({"spec": spec}), SPACE)


def as_declared(upgrade: Upgrade) -> dict[str, bool]:
    """Of each Nacos, whether its present spec has been acted upon and all of it is up."""
    every = [from_dict(Nacos, obj) for (table, _), obj in upgrade.own().items() if table == "nacos.io/nacos"]
    return {
        nacos.metadata.name: nacos.status.phase == "Running"
        and nacos.status.observed_generation == nacos.metadata.generation
        and is_true(nacos.status.kube_conditions, "Ready")
        for nacos in every
    }


def names(upgrade: Upgrade, table: str) -> set[str]:
    return {key.partition("/")[2] for kind, key in upgrade.objects() if kind == table and key.startswith(f"{SPACE}/")}


def pods_of(upgrade: Upgrade, name: str) -> dict[str, str]:
    """Name to uid: a pod that was restarted has another one."""
    uids = upgrade.uids()
    return {key: uid for (table, key), uid in uids.items() if table == "/pods" and key.startswith(f"{SPACE}/{name}-")}


@pytest.mark.parametrize("definitions", [OLD, NEW])
async def test_each_is_changed_scaled_and_deleted(definitions: str) -> None:
    async with an_upgrade("nacos", definitions) as upgrade, upgrade.operating():
        await upgrade.rest(60.0)
        assert as_declared(upgrade) == dict.fromkeys(CHANGES, True)
        before = {name: pods_of(upgrade, name) for name in CHANGES}
        for name, spec in CHANGES.items():
            await change(upgrade, name, **spec)
        await upgrade.rest()
        assert as_declared(upgrade) == dict.fromkeys(CHANGES, True)
        after = {name: pods_of(upgrade, name) for name in CHANGES}
        assert len(after["nacos-pg"]) == 5
        assert after["nacos-single"] == before["nacos-single"], "a volume grows under its server"
        for name in ("embedded", "nacos-cluster", "oldest"):
            assert not set(after[name].values()) & set(before[name].values()), "rolled"
        for name in CHANGES:
            await upgrade.client.delete(Nacos, name, SPACE)
        await upgrade.rest()
        assert upgrade.own() == {}
        assert names(upgrade, "/pods") == names(upgrade, "apps/statefulsets") == names(upgrade, "batch/jobs") == set()
        assert names(upgrade, "/services") == {"kubernetes"}
        assert names(upgrade, "/persistentvolumeclaims") == CLAIMS, "the data stay"
        assert names(upgrade, "/secrets") == OWN_SECRETS
        assert "own-lines" in names(upgrade, "/configmaps")


async def test_the_way_back_loses_the_fields_of_now_and_restarts_nothing_else() -> None:
    async with an_upgrade("nacos", NEW) as upgrade:
        async with upgrade.operating():
            await upgrade.rest(60.0)
            await change(upgrade, "oldest", networkPolicy={"enabled": True})
            await change(upgrade, "nacos-single", podSecurity="Restricted", priorityClassName="system-cluster-critical")
            await upgrade.rest()
            assert as_declared(upgrade) == dict.fromkeys(CHANGES, True)
            assert await upgrade.client.get(NetworkPolicy, "oldest", SPACE)
        await upgrade.put_back_definitions()
        old = {name: (await upgrade.client.get("nacos", name, SPACE))["spec"] for name in ("oldest", "nacos-single")}
        assert "networkPolicy" not in old["oldest"]
        assert not {"podSecurity", "priorityClassName"} & old["nacos-single"].keys()
        pods = {name: pods_of(upgrade, name) for name in CHANGES}
        async with upgrade.operating():
            await upgrade.rest()
            assert as_declared(upgrade) == dict.fromkeys(CHANGES, True)
            assert "oldest" not in names(upgrade, "networking.k8s.io/networkpolicies")
            rolled = {name for name in CHANGES if pods_of(upgrade, name) != pods[name]}
            assert rolled == {"nacos-single"}, "with its priority class and its standard of Pod Security"
            template = (await upgrade.client.get(StatefulSet, "nacos-single", SPACE)).spec.template
            assert "nacos.io/pod-security" not in template.metadata.annotations
            upgrade.writes()
            await upgrade.rest()
            assert upgrade.writes() == []
