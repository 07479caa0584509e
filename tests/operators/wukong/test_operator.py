"""What leads to a reconcile, and how the operator is declared: without a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.cache.record import Meta, receive
from konverge.cache.store import Change, ChangeType
from konverge.objects import to_dict, to_json
from konverge.objects.codec import from_json
from konverge.objects.kinds.core_v1 import Node, PersistentVolumeClaim, Secret, Service
from konverge.objects.kinds.storage_v1 import StorageClass
from konverge.operators.wukong.grants import wanted
from konverge.operators.wukong.kinds import (
    DataVolume,
    NetworkAttachmentDefinition,
    NodeNetworkConfigurationPolicy,
    NodeNetworkState,
    VirtualMachine,
    VirtualMachineInstance,
    VirtualMachineInstanceMigration,
    VirtualMachineRestore,
    VirtualMachineSnapshot,
)
from konverge.operators.wukong.names import LABEL
from konverge.operators.wukong.operator import OPERATOR, REFERS, controllers, refers_to
from konverge.operators.wukong.options import NODE_INTERFACES, Options, from_environment, to_environment
from konverge.operators.wukong.resource import (
    AnyTemplate,
    AnyWukong,
    WukongAddress,
    WukongQuota,
    WukongSnapshot,
    WukongSnapshotSchedule,
)
from konverge.operators.wukong.steps.nodes import BRIDGES
from konverge.runtime import Controller, Request
from konverge.runtime.predicates import bind
from tests.operators.wukong.specs import Spec, disk, net, spec
from tests.operators.wukong.stage import OLD, SPACE, Stage, made, vmi

pytestmark = pytest.mark.spec("W-02")

ALLOWED = Options(node_interfaces=frozenset({"ens224"}))


def referred(given: Any) -> list[str]:
    record = receive(to_json(to_dict(made(AnyWukong, "web", spec=given))))[1]
    return list(refers_to(record, Meta(name="web", namespace=SPACE)))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (disk(), ["PersistentVolumeClaim team-a/web-system"]),
        (disk(image="x"), ["PersistentVolumeClaim team-a/web-system", "DataVolume team-a/web-system"]),
        (spec(disks=[{"name": "a", "existingClaim": "old"}]), ["PersistentVolumeClaim team-a/old"]),
        (net(), [*referred(spec()), "NetworkAttachmentDefinition team-a/web-lan-nad"]),
        (
            spec(
                networks=[{"name": "default"}, {"name": "a", "nadName": "infra/net"}, {"name": "b", "nadName": "net"}]
            ),
            [
                "PersistentVolumeClaim team-a/web-system",
                "NetworkAttachmentDefinition infra/net",
                "NetworkAttachmentDefinition team-a/net",
            ],
        ),
        (
            spec(
                cloudInitUser={"name": "u", "sshKeySecret": "own"}, sshKeySecret="keys", sshKeyPropagation="guestAgent"
            ),
            ["PersistentVolumeClaim team-a/web-system", "Secret team-a/keys", "Secret team-a/own"],
        ),
        (
            spec(restoreFromSnapshot="back"),
            ["PersistentVolumeClaim team-a/web-system", "WukongSnapshot team-a/back"],
        ),
        ({"template": {"name": "small"}}, ["WukongTemplate team-a/small"]),
        ({"disks": 7}, []),
    ],
)
def test_what_a_wukong_refers_to(given: Spec, expected: list[str]) -> None:
    assert referred(given) == expected


def test_what_its_template_refers_to_is_its_own() -> None:
    status = {"template": {"name": "small", "spec": spec(sshKeySecret="keys")}}
    record = receive(to_json(to_dict(made(AnyWukong, "web", spec={"template": {"name": "small"}}, status=status))))[1]
    named = refers_to(record, Meta(name="web", namespace=SPACE))
    assert list(named) == [
        "PersistentVolumeClaim team-a/web-system",
        "Secret team-a/keys",
        "WukongTemplate team-a/small",
    ]


def declared(options: Options | None = None, **more: Any) -> list[Controller[Any]]:
    return controllers(options or Options(), **more)


def requests(stage: Stage, obj: Any, options: Options | None = None) -> list[Request] | None:
    """Which Wukongs a change of an object leads to; None for what is not watched."""
    watches = [watch for watch in declared(options)[0].watched if watch.kind is type(obj)]
    if not watches:
        return None
    (watch,) = watches
    if watch.requests is not None:
        return list(watch.requests(obj))
    assert watch.lookup is not None
    return [Request(*key) for key in watch.lookup(obj, stage)]


def test_a_change_of_what_is_referred_to_leads_to_a_reconcile() -> None:
    given = spec(
        disks=[{"name": "system", "size": "1Gi", "image": "x"}],
        networks=[{"name": "lan", "nadName": "infra/net"}],
        sshKeySecret="keys",
        restoreFromSnapshot="back",
    )
    stage = Stage(given)
    ours = [Request(SPACE, "web")]
    assert requests(stage, made(PersistentVolumeClaim, "web-system")) == ours
    assert requests(stage, made(DataVolume, "web-system")) == ours
    assert requests(stage, made(Secret, "keys")) == ours
    assert requests(stage, made(WukongSnapshot, "back", spec={"wukongName": "x"})) == ours
    elsewhere = {"namespace": "infra"}
    assert requests(stage, made(NetworkAttachmentDefinition, "net", meta=elsewhere)) == ours
    assert requests(stage, made(NetworkAttachmentDefinition, "net")) == []
    assert requests(stage, made(Secret, "other")) == []
    assert requests(stage, made(Secret, "keys", meta=elsewhere)) == []


def test_a_quota_leads_to_the_machines_that_wait_for_it_or_do_not_know_of_it() -> None:
    def machine(name: str, status: str) -> AnyWukong:
        within = {"type": "WithinQuota", "status": status, "reason": "R", "lastTransitionTime": OLD}
        return made(AnyWukong, name, owners=(), spec=spec(), status={"conditions": [within]})

    others = (machine("waits", "False"), machine("has", "True"))
    grants = [to_dict(wanted(spec(), other.metadata.name, other.metadata.uid or "")) for other in others]
    quota = made(WukongQuota, "default", owners=(), spec={}, status={"granted": grants})
    assert requests(Stage(None, quota, *others), quota) == [Request(SPACE, "waits"), Request(SPACE, "web")]
    gone = requests(Stage(None, *others), quota)
    assert gone == [Request(SPACE, "has"), Request(SPACE, "waits"), Request(SPACE, "web")]


def test_what_asks_leads_to_the_quota_of_its_namespace_where_there_is_one() -> None:
    machine = made(AnyWukong, "web", owners=(), spec=spec())
    snapshot = made(WukongSnapshot, "back", owners=(), spec={"wukongName": "web"})
    with_one = Stage(None, made(WukongQuota, "default", owners=(), spec={}))
    for watch, asking in zip(declared()[3].watched, (machine, snapshot), strict=True):
        assert watch.lookup is not None
        assert list(watch.lookup(asking, with_one)) == [Request(SPACE, "default")]
        assert list(watch.lookup(asking, Stage())) == []
        assert list(watch.lookup(asking, NoCaches())) == []  # type: ignore[arg-type]


@pytest.mark.spec("W-31")
def test_a_quota_leads_to_the_snapshots_that_were_not_begun() -> None:
    (watch,) = declared()[1].watched
    assert watch.lookup is not None
    waits = made(WukongSnapshot, "waits", owners=(), spec={"wukongName": "web"})
    begun = made(WukongSnapshot, "begun", owners=(), spec={"wukongName": "web"}, status={"snapshotName": "begun"})
    quota = made(WukongQuota, "default", owners=(), spec={})
    assert list(watch.lookup(quota, Stage(None, waits, begun))) == [Request(SPACE, "waits")]
    assert list(watch.lookup(quota, NoCaches())) == []  # type: ignore[arg-type]


def test_an_instance_leads_to_the_wukong_that_its_label_names() -> None:
    assert requests(Stage(), vmi()) == [Request(SPACE, "web")]
    assert requests(Stage(), vmi(meta={"labels": {LABEL: "other"}})) == [Request(SPACE, "other")]
    assert requests(Stage(), vmi(meta={"labels": {}})) == []


def test_a_policy_leads_to_all_machines_on_its_bridge() -> None:
    stage = Stage(net(physicalInterface="ens224"), made(AnyWukong, "two", owners=(), spec=net(physicalInterface="a")))
    policy = made(NodeNetworkConfigurationPolicy, "wukong-br-br-lan", owners=())
    assert requests(stage, policy, ALLOWED) == [Request(SPACE, "web"), Request(SPACE, "two")]
    assert requests(stage, made(NodeNetworkConfigurationPolicy, "x", owners=()), ALLOWED) == []
    assert requests(stage, policy) is None


class NoCaches:
    def lister(self, kind: Any) -> None:
        return None


def test_without_a_cache_nothing_is_referred_to() -> None:
    for kind in (Secret, NodeNetworkConfigurationPolicy, WukongQuota):
        (watch,) = [watch for watch in declared(ALLOWED)[0].watched if watch.kind is kind]
        assert watch.lookup is not None
        assert list(watch.lookup(made(kind, "x"), NoCaches())) == []  # type: ignore[arg-type]


FOREIGN = {
    VirtualMachine,
    VirtualMachineInstance,
    DataVolume,
    NetworkAttachmentDefinition,
    VirtualMachineRestore,
    VirtualMachineSnapshot,
    VirtualMachineInstanceMigration,
}
"""The kinds of others, which a cluster may not have."""


def read(controller: Controller[Any]) -> set[Any]:
    """The kinds that are cached although their changes lead nowhere."""
    return {use.kind for use in controller.uses if use.cached}


def test_what_the_controllers_declare() -> None:
    wukong, snapshot, schedule, quota, address = declared(namespaces=("a", "b"))
    assert (wukong.name, wukong.kind, wukong.namespaces) == ("wukong", AnyWukong, ("a", "b"))
    assert {owned.kind for owned in wukong.owned} == {
        VirtualMachine,
        DataVolume,
        PersistentVolumeClaim,
        NetworkAttachmentDefinition,
        Secret,
        Service,
        VirtualMachineRestore,
        VirtualMachineInstanceMigration,
    }
    assert read(wukong) == {StorageClass, VirtualMachineSnapshot}
    assert wukong.optional_kinds == {*FOREIGN, AnyTemplate, WukongQuota}
    assert wukong.index_functions.keys() == {AnyWukong, VirtualMachineInstanceMigration}
    assert wukong.index_functions[AnyWukong].keys() == {REFERS, BRIDGES}
    assert (snapshot.name, snapshot.kind, snapshot.namespaces) == ("wukongsnapshot", WukongSnapshot, ("a", "b"))
    assert [owned.kind for owned in snapshot.owned] == [VirtualMachineSnapshot]
    assert read(snapshot) == {AnyWukong, VirtualMachine}
    assert [watch.kind for watch in snapshot.watched] == [WukongQuota]
    assert snapshot.optional_kinds == {VirtualMachineSnapshot, VirtualMachine, WukongQuota}
    assert (schedule.kind, schedule.namespaces) == (WukongSnapshotSchedule, ("a", "b"))
    assert [watch.kind for watch in schedule.watched] == [WukongSnapshot]
    assert read(schedule) == {AnyWukong, VirtualMachineSnapshot}
    assert (quota.kind, quota.namespaces) == (WukongQuota, ("a", "b"))
    assert [watch.kind for watch in quota.watched] == [AnyWukong, WukongSnapshot]
    assert read(quota) == {PersistentVolumeClaim, VirtualMachineInstance}
    assert quota.optional_kinds == {WukongQuota, VirtualMachineInstance}
    assert (address.kind, address.namespaces) == (WukongAddress, ("a", "b"))
    assert [owned.kind for owned in address.owned] == [Service]
    assert [watch.kind for watch in address.watched] == [AnyWukong]
    assert address.optional_kinds == {WukongAddress}
    for controller in (wukong, snapshot, schedule, quota, address):
        assert (controller.settings.workers, controller.settings.timeout) == (32, 60.0)
        assert controller.settings.max_retries == 0
    assert read(declared(ALLOWED)[0]) == {StorageClass, NodeNetworkState, Node, VirtualMachineSnapshot}
    assert NodeNetworkConfigurationPolicy in [use.kind for use in declared(ALLOWED)[0].uses if "apply" in use.verbs]
    assert NodeNetworkConfigurationPolicy not in declared()[0].kinds


def test_labels_and_annotations_matter_and_a_status_does_not() -> None:
    declared_when = declared()[0].when
    assert declared_when is not None
    predicate = bind(declared_when, lambda raw: from_json(AnyWukong, raw))

    def change(**after: Any) -> Change:
        def record(more: dict[str, Any]) -> Any:
            status, meta = more.pop("status", {}), {"generation": 1, **more}
            return receive(to_json(to_dict(made(AnyWukong, "web", meta=meta, status=status))))

        key, old, _ = record({})
        _, new, _ = record(after)
        return Change(ChangeType.UPDATED, key, old, new)

    assert predicate(change(generation=2))
    assert predicate(change(labels={"a": "b"}))
    assert predicate(change(annotations={"a": "b"}))
    assert not predicate(change(status={"message": "x"}))


def test_the_interfaces_of_nodes_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NODE_INTERFACES, " ens256 ,,ens224")
    assert from_environment().node_interfaces == {"ens224", "ens256"}
    assert to_environment() == OPERATOR.environment() == {NODE_INTERFACES: "ens224,ens256"}
    assert [watch.kind for watch in controllers()[0].watched][-1] is NodeNetworkConfigurationPolicy
    monkeypatch.delenv(NODE_INTERFACES)
    assert to_environment() == {}
    assert VirtualMachineInstance in [watch.kind for watch in controllers()[0].watched]
