"""What the operator may do: exactly what it does, with the names that the groups have."""

from __future__ import annotations

import pytest

from konverge.cli.installation import Installation
from konverge.operators.catalog import SUMMARIES, find
from konverge.operators.wukong.operator import controllers
from konverge.operators.wukong.options import NODE_INTERFACES, Options
from konverge.runtime.rbac import permissions, rules_for

pytestmark = pytest.mark.spec("W-12")

ALL = "create delete get list patch watch"
READ = "get list watch"


def granted(options: Options) -> dict[str, str]:
    """`resource.group` -> its verbs."""
    return {
        f"{resource}.{rule['apiGroups'][0]}".rstrip("."): " ".join(rule["verbs"])
        for rule in rules_for(permissions(controllers(options)))
        for resource in rule["resources"]
    }


def test_the_rules_are_those_of_the_facts_with_nothing_to_spare() -> None:
    assert granted(Options()) == {
        "wukongs.vm.novasphere.dev": "get list patch watch",
        "wukongs/status.vm.novasphere.dev": "patch",
        "wukongs/finalizers.vm.novasphere.dev": "update",
        "wukongsnapshots.vm.novasphere.dev": "create delete get list watch",
        "wukongsnapshots/status.vm.novasphere.dev": "patch",
        "wukongsnapshots/finalizers.vm.novasphere.dev": "update",
        "wukongsnapshotschedules.vm.novasphere.dev": READ,
        "wukongsnapshotschedules/status.vm.novasphere.dev": "patch",
        "wukongtemplates.vm.novasphere.dev": READ,
        "wukongaddresses.vm.novasphere.dev": READ,
        "wukongaddresses/status.vm.novasphere.dev": "patch",
        "wukongaddresses/finalizers.vm.novasphere.dev": "update",
        "endpointslices.discovery.k8s.io": "list",
        "wukongquotas.vm.novasphere.dev": READ,
        "wukongquotas/status.vm.novasphere.dev": "patch",
        "virtualmachines.kubevirt.io": ALL,
        "virtualmachineinstances.kubevirt.io": "delete get list watch",
        "virtualmachineinstancemigrations.kubevirt.io": ALL,
        "virtualmachineinstances/pause.subresources.kubevirt.io": "update",
        "virtualmachineinstances/unpause.subresources.kubevirt.io": "update",
        "virtualmachines/restart.subresources.kubevirt.io": "update",
        "virtualmachinesnapshots.snapshot.kubevirt.io": ALL,
        "virtualmachinerestores.snapshot.kubevirt.io": ALL,
        "datavolumes.cdi.kubevirt.io": ALL,
        "network-attachment-definitions.k8s.cni.cncf.io": ALL,
        "persistentvolumeclaims": ALL,
        "secrets": ALL,
        "services": ALL,
        "storageclasses.storage.k8s.io": READ,
        "customresourcedefinitions.apiextensions.k8s.io": "get",
        "events": "create patch",
    }


def test_nodes_are_in_reach_only_where_the_settings_say_so() -> None:
    more = granted(Options(node_interfaces=frozenset({"ens224"})))
    without = granted(Options())
    assert {name: verbs for name, verbs in more.items() if name not in without} == {
        "nodenetworkconfigurationpolicies.nmstate.io": ALL,
        "nodenetworkstates.nmstate.io": READ,
        "nodes": READ,
    }


def test_no_rule_has_a_wildcard_and_the_plural_of_attachments_is_right() -> None:
    rules = rules_for(permissions(controllers(Options(node_interfaces=frozenset({"ens224"})))))
    names_ = [word for rule in rules for key in ("apiGroups", "resources", "verbs") for word in rule[key]]
    assert "*" not in names_
    assert "networkattachmentdefinitions" not in names_


def test_the_catalogue_knows_it() -> None:
    assert "wukong" in SUMMARIES
    operator = find("wukong")
    names = [definition["metadata"]["name"] for definition in operator.definitions()]
    assert names == [
        "wukongs.vm.novasphere.dev",
        "wukongsnapshots.vm.novasphere.dev",
        "wukongsnapshotschedules.vm.novasphere.dev",
        "wukongtemplates.vm.novasphere.dev",
        "wukongquotas.vm.novasphere.dev",
        "wukongaddresses.vm.novasphere.dev",
    ]
    assert {sample_object["kind"] for sample_object in operator.sample_objects()} >= {"Wukong", "WukongSnapshot"}


def test_a_permission_to_change_nodes_reaches_the_pod_that_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NODE_INTERFACES, "ens256, ens224")
    operator = find("wukong")
    installed = Installation(operators=[operator], namespace="vms").everything()
    (deployment,) = (item for item in installed if item["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["env"] == [{"name": NODE_INTERFACES, "value": "ens224,ens256"}]
    (role,) = (item for item in installed if item["kind"] == "ClusterRole")
    assert any("nodenetworkconfigurationpolicies" in rule["resources"] for rule in role["rules"])
    monkeypatch.delenv(NODE_INTERFACES)
    bare = Installation(operators=[operator], namespace="vms").everything()
    (deployment,) = (item for item in bare if item["kind"] == "Deployment")
    assert "env" not in deployment["spec"]["template"]["spec"]["containers"][0]
