"""Bridges on the nodes, without a cluster: which policy is written, and every reason why none is."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.cache.record import Meta, receive
from konverge.objects import from_dict, to_dict, to_json
from konverge.objects.kinds.core_v1 import Node
from konverge.operators.wukong.children.networks import policy_for
from konverge.operators.wukong.kinds import (
    NetworkAttachmentDefinition,
    NodeNetworkConfigurationPolicy,
    NodeNetworkState,
)
from konverge.operators.wukong.names import MANAGED_BY, OPERATOR, policy
from konverge.operators.wukong.options import Options
from konverge.operators.wukong.resource import AnyWukong
from konverge.operators.wukong.steps.networks import networks, sweep
from konverge.operators.wukong.steps.nodes import bridges_of
from tests.operators.wukong.specs import Spec, net, spec
from tests.operators.wukong.stage import Stage, condition, controlled_by, made, vm, vmi

pytestmark = [pytest.mark.virtual, pytest.mark.spec("W-04")]

ALLOWED = Options(node_interfaces=frozenset({"ens224"}))
LAN = net(physicalInterface="ens224")
BRIDGE = "wukong-br-br-lan"
NEWER = "2021-01-01T00:00:00Z"


def nncp(bridge: str = "br-lan", interface: str = "ens224", type: Any = "bridge", **more: Any) -> Any:
    desired = policy_for(bridge, interface, type)
    meta = {"labels": desired.metadata.labels, **more.pop("meta", {})}
    spec = {"desiredState": more.pop("state", desired.spec.desired_state)}
    status = {"conditions": more.pop("conditions", [condition("Available")])}
    return made(
        NodeNetworkConfigurationPolicy,
        more.pop("name", desired.metadata.name),
        owners=more.pop("owners", ()),
        meta=meta,
        spec=spec,
        status=status,
    )


def node_state(*interfaces: dict[str, Any], name: str = "node-1", routes: Any = None) -> NodeNetworkState:
    current = {"interfaces": [*interfaces], **({"routes": {"running": routes}} if routes is not None else {})}
    return made(NodeNetworkState, name, owners=(), status={"currentState": current})


def bridge(name: str, *ports: str) -> dict[str, Any]:
    return {"name": name, "bridge": {"port": [{"name": port} for port in ports]}}


async def run(given: Spec, *objects: Any, options: Options = ALLOWED, **more: Any) -> Stage:
    stage = Stage(given, *objects, options=options, **more)
    await networks(stage.state)
    return stage


def written(stage: Stage) -> list[str]:
    return stage.applied("NodeNetworkConfigurationPolicy")


# ------------------------------------------------------------------ whether the operator may


async def test_a_bridge_is_made_and_waited_for() -> None:
    stage = await run(LAN)
    (sent,) = [sent for sent in stage.sent if sent.kind == "NodeNetworkConfigurationPolicy"]
    assert (sent.name, sent.force) == (BRIDGE, False)
    assert sent.body["spec"] == to_dict(policy_for("br-lan", "ens224"))["spec"]
    assert not {"uid", "ownerReferences"} & sent.body["metadata"].keys()
    assert stage.reasons() == ["NodeNetworkProgressing"]
    assert stage.state.trouble[0].message == "network lan: NMState is making the bridge"
    assert stage.state.trouble[0].condition == "NetworksConfigured"


@pytest.mark.parametrize(
    ("given", "options", "without", "reasons"),
    [
        (net(), ALLOWED, [], []),
        (net(physicalInterface="ens224", nodeNetwork={"manage": False}), ALLOWED, [], []),
        (LAN, Options(), [], []),
        (net(physicalInterface="ens224", nodeNetwork={}), Options(), [], []),
        (net(physicalInterface="ens224", nodeNetwork={"manage": True}), Options(), [], ["NodeNetworksNotAllowed"]),
        (net(physicalInterface="eth0"), ALLOWED, [], ["InterfaceNotAllowed"]),
        (LAN, ALLOWED, [NodeNetworkConfigurationPolicy], ["NMStateMissing"]),
    ],
)
async def test_where_the_operator_may_not_it_writes_nothing(
    given: Spec, options: Options, without: list[Any], reasons: list[str]
) -> None:
    stage = await run(given, options=options, without=without)
    assert (written(stage), stage.reasons()) == ([], reasons)
    assert stage.applied("NetworkAttachmentDefinition") == ["web-lan-nad"]


# ------------------------------------------------------------------ a policy that is there


async def test_a_policy_of_ours_is_left_as_it_is_or_repaired() -> None:
    stage = await run(LAN, nncp())
    assert (written(stage), stage.reasons()) == ([], [])
    changed = nncp(state={"interfaces": [{"name": "br-lan", "type": "linux-bridge", "state": "down"}]})
    stage = await run(LAN, changed)
    (sent,) = [sent for sent in stage.sent if sent.kind == "NodeNetworkConfigurationPolicy"]
    assert (sent.body["metadata"]["uid"], sent.force) == (f"uid-of-{BRIDGE}", True)


@pytest.mark.parametrize(
    ("conditions", "reasons", "failed"),
    [
        ([condition("Available")], [], False),
        ([condition("Degraded", "True", "Failed", "no such link")], ["NodeNetworkFailed"], True),
        ([condition("Degraded", "False")], ["NodeNetworkProgressing"], False),
        ([condition("Ignored")], ["NodeNetworkIgnored"], False),
        ([], ["NodeNetworkProgressing"], False),
        ([condition("Available"), condition("Degraded")], [], False),
    ],
)
async def test_what_nmstate_reports(conditions: list[Any], reasons: list[str], failed: bool) -> None:
    stage = await run(LAN, nncp(conditions=conditions))
    assert stage.reasons() == reasons
    assert (stage.state.failed is not None) == failed


async def test_a_failure_of_nmstate_is_told_with_its_text() -> None:
    stage = await run(LAN, nncp(conditions=[condition("Degraded", "True", "Failed", "no such link")]))
    assert stage.state.trouble[0].message == "network lan: no such link"
    stage = await run(LAN, nncp(conditions=[condition("Degraded", "True", "Failed", "")]))
    assert stage.state.trouble[0].message == "network lan: NMState could not make the bridge"


@pytest.mark.spec("W-16")
async def test_a_policy_of_others_is_left_as_it_is() -> None:
    for owners, meta in (
        ((), {"labels": {}}),
        ((), {"labels": {MANAGED_BY: "somebody"}}),
        ([controlled_by("X", "x")], {"labels": {}}),
    ):
        stage = await run(LAN, nncp(owners=owners, meta=meta, state={}))
        assert (written(stage), stage.reasons()) == ([], ["PolicyNotOurs"])
        assert stage.state.failed is not None
    given = nncp(meta={"labels": {}, "annotations": {"konverge.dev/adopt-by": "Wukong/web"}})
    assert written(await run(LAN, given)) == [BRIDGE]
    assert written(await run(LAN, nncp(meta={"labels": {MANAGED_BY: OPERATOR}}))) == [BRIDGE]


async def test_a_bridge_is_over_one_interface_and_of_one_type() -> None:
    both = Options(node_interfaces=frozenset({"ens224", "ens256"}))
    stage = await run(LAN, nncp(interface="ens256"), options=both)
    assert (written(stage), stage.reasons()) == ([], ["BridgeInUse"])
    stage = await run(LAN, nncp(type="ovs"))
    assert (written(stage), stage.reasons()) == ([], ["BridgeInUse"])
    for state in ({}, {"interfaces": [{"name": "br-lan", "type": "linux-bridge"}]}):
        assert written(await run(LAN, nncp(state=state))) == [BRIDGE], "it has no interface yet"
    ovs = net(type="ovs", physicalInterface="ens224")
    stage = await run(ovs, nncp(type="ovs"))
    assert (written(stage), stage.reasons()) == ([], [])
    assert (await run(ovs, nncp())).reasons() == ["BridgeInUse"]
    two = nncp(state={"interfaces": [*policy_for("br-lan", "ens224").spec.desired_state["interfaces"],
                                     {"name": "ens224", "type": "ethernet"}]})  # fmt: skip
    assert (await run(LAN, two)).reasons() == []


# ------------------------------------------------------------------ what is on the nodes


async def test_a_bridge_that_all_nodes_have_needs_no_policy() -> None:
    has, lacks = bridge("br-lan", "ens224"), bridge("br-lan", "ens256")
    stage = await run(LAN, node_state(has), node_state(has, name="node-2"))
    assert (written(stage), stage.reasons()) == ([], [])
    for other in (node_state(lacks, name="node-2"), node_state({"name": "br-lan"}, name="node-2"),
                  node_state(bridge("br-x"), name="node-2")):  # fmt: skip
        stage = await run(LAN, node_state(has), other)
        assert written(stage) == [BRIDGE]
    assert written(await run(LAN, node_state(has), without=[NodeNetworkState])) == [BRIDGE]
    for status in ({}, {"currentState": {}}):
        empty = made(NodeNetworkState, "node-2", owners=(), status=status)
        assert written(await run(LAN, empty)) == [BRIDGE]


async def test_an_interface_that_is_in_another_bridge_stays_there() -> None:
    for present in (
        node_state(bridge("br-other", "ens224")),
        node_state(bridge("br-hand", "ens256"), bridge("br-other", "ens224")),
        nncp("br-other"),
        nncp("br-other", name="by-hand", meta={"labels": {}}),
    ):
        stage = await run(LAN, present)
        assert (written(stage), stage.reasons()) == ([], ["InterfaceInUse"]), present
        assert stage.state.trouble[0].message == "network lan: ens224 is in bridge br-other already: use that one"
    assert written(await run(LAN, node_state(bridge("br-hand", "ens256")), nncp("br-x", "ens256"))) == [BRIDGE]


async def test_of_two_policies_over_one_interface_the_older_one_counts() -> None:
    for ours, theirs, reasons in (
        ({}, {"creationTimestamp": NEWER}, []),
        ({"creationTimestamp": NEWER}, {}, ["InterfaceInUse"]),
        ({}, {}, []),
        ({"creationTimestamp": None}, {"creationTimestamp": NEWER}, []),
    ):
        stage = await run(LAN, nncp(meta=ours), nncp("br-other", meta=theirs))
        assert stage.reasons() == reasons, (ours, theirs)
    ours, newest = nncp(meta={"creationTimestamp": NEWER}), {"creationTimestamp": "2022-01-01T00:00:00Z"}
    stage = await run(LAN, ours, nncp("br-a", meta=newest), nncp("br-z"))
    assert stage.state.trouble[0].message == "network lan: ens224 is in bridge br-z already: use that one"
    first = nncp("br-a", meta={})
    assert (await run(LAN, nncp(), first)).reasons() == ["InterfaceInUse"], "by name, when they are of the same age"


def node(address: str, type: str = "InternalIP") -> Node:
    status = {"addresses": [{"type": type, "address": address}]}
    return from_dict(Node, {"kind": "Node", "metadata": {"name": "node-1"}, "status": status})


async def test_an_interface_that_a_node_is_reached_by_is_never_taken() -> None:
    def addressed(ip: str, name: str = "ens224", family: str = "ipv4") -> NodeNetworkState:
        return node_state({"name": name, family: {"address": [{"ip": ip}]}})

    def routed(destination: str, interface: str | None = "ens224") -> NodeNetworkState:
        return node_state(routes=[{"destination": destination, "next-hop-interface": interface}])

    for objects in (
        (routed("0.0.0.0/0"),),
        (routed("::/0"),),
        (addressed("10.0.0.1"), node("10.0.0.1")),
        (addressed("fd00::1", family="ipv6"), node("fd00::1")),
        (node_state(), node_state(name="node-2", routes=[{"destination": "::/0", "next-hop-interface": "ens224"}])),
    ):
        stage = await run(LAN, *objects)
        assert (written(stage), stage.reasons()) == ([], ["InterfaceInUse"])
        assert "is reached by" in stage.state.trouble[0].message
    for objects in (
        (routed("10.0.0.0/8"),),
        (routed("0.0.0.0/0", "eth0"),),
        (routed("0.0.0.0/0", None),),
        (addressed("10.0.0.1"), node("10.0.0.2")),
        (addressed("10.0.0.1"), node("10.0.0.1", "Hostname")),
        (addressed("10.0.0.1", "eth0"), node("10.0.0.1")),
        (addressed("10.0.0.1"),),
        (node_state({"name": "ens224", "ipv4": {"enabled": False}}), node("10.0.0.1")),
    ):
        assert written(await run(LAN, *objects)) == [BRIDGE], objects


async def test_a_bridge_that_was_made_is_not_judged_again_by_what_is_on_the_nodes() -> None:
    reached = node_state(routes=[{"destination": "0.0.0.0/0", "next-hop-interface": "ens224"}])
    assert (await run(LAN, nncp(), reached)).reasons() == []


# ------------------------------------------------------------------ attachments


async def test_every_network_has_an_entry_and_an_attachment() -> None:
    given = spec(networks=[{"name": "lan", "type": "bridge", "primary": True}, {"name": "b", "nadName": "infra/net"}])
    infra = made(NetworkAttachmentDefinition, "net", owners=(), meta={"namespace": "infra"})
    stage = await run(given, infra)
    assert [(entry.name, entry.nad_name, entry.primary) for entry in stage.state.networks] == [
        ("lan", "web-lan-nad", True),
        ("b", "infra/net", False),
    ]
    assert all(entry.mac_address.count(":") == 5 for entry in stage.state.networks)
    assert stage.applied("NetworkAttachmentDefinition") == ["web-lan-nad"]
    assert stage.reasons() == []


async def test_what_is_known_of_an_interface_is_kept() -> None:
    before = {"networks": [{"name": "default", "macAddress": "02:00:00:00:00:09", "ipAddress": "10.0.0.9"}]}
    stage = await run(spec(), status=before)
    (entry,) = stage.state.networks
    assert (entry.mac_address, entry.ip_address, entry.nad_name) == ("02:00:00:00:00:09", "10.0.0.9", "")
    assert stage.sent == []


async def test_an_attachment_that_is_named_must_be_there() -> None:
    given = spec(networks=[{"name": "lan", "nadName": "theirs"}])
    assert (await run(given)).reasons() == ["NetworkNotFound"]
    assert (await run(given, made(NetworkAttachmentDefinition, "theirs", owners=()))).reasons() == []
    elsewhere = made(NetworkAttachmentDefinition, "theirs", owners=(), meta={"namespace": "infra"})
    assert (await run(given, elsewhere)).reasons() == ["NetworkNotFound"]


async def test_without_multus_no_other_network_takes_the_place() -> None:
    for given, reasons in ((net(), ["MultusMissing"]), (spec(), [])):
        stage = await run(given, without=[NetworkAttachmentDefinition])
        assert (stage.sent, stage.reasons()) == ([], reasons)


async def test_attachments_that_nothing_uses_any_more_are_deleted() -> None:
    def nad(name: str, **more: Any) -> NetworkAttachmentDefinition:
        return made(NetworkAttachmentDefinition, name, **more)

    old = (nad("web-lan-nad"), nad("web-old-nad"), nad("web-used-nad"), nad("web-plugged-nad"))
    strange = nad("web-strange-nad", owners=())
    going = nad("web-going-nad", meta={"deletionTimestamp": NEWER})
    machine = vm(networks=[{"name": "used", "multus": {"networkName": "web-used-nad"}}, {"name": "default", "pod": {}}])
    stage = Stage(net(), *old, strange, going)
    stage.state.vm = machine
    stage.state.vmi = vmi(interfaces=[{"name": "plugged"}, {"name": ""}])
    await sweep(stage.state)
    assert stage.deleted() == [("NetworkAttachmentDefinition", "web-old-nad")]
    bare = Stage(net(), *old)
    await sweep(bare.state)
    assert [name for _, name in bare.deleted()] == ["web-old-nad", "web-plugged-nad", "web-used-nad"]
    missing = Stage(net(), *old, without=[NetworkAttachmentDefinition])
    await sweep(missing.state)
    assert missing.sent == []


# ------------------------------------------------------------------ the index


@pytest.mark.parametrize(
    ("given", "bridges"),
    [
        (None, []),
        ([], []),
        ([{"name": "lan", "physicalInterface": "ens224"}], ["br-lan"]),
        ([{"name": "lan", "physicalInterface": "ens224", "bridgeName": "br-x"}], ["br-x"]),
        ([{"name": "lan", "physicalInterface": "ens224", "nadName": "theirs"}], []),
        ([{"name": "lan", "physicalInterface": ""}, {"name": "b"}, 7], []),
        ([{"physicalInterface": "e"}], ["br-"]),
    ],
)
def test_which_bridges_an_unchecked_spec_asks_for(given: Any, bridges: list[str]) -> None:
    asking = made(AnyWukong, "web", spec={"networks": given} if given is not None else {})
    record = receive(to_json(to_dict(asking)))[1]
    assert list(bridges_of(record, Meta(name="web"))) == [policy(bridge) for bridge in bridges]
