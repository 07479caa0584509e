"""The samples: accepted as they are, and what is made of them stands in `golden/`, whole, to be read and reviewed.

After a change that is meant, `GOLDEN=write pytest tests/operators/wukong/test_samples.py` writes them again. That they
come up is tested where the command line makes them, on the simulated KubeVirt.
"""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge.objects import from_dict, to_dict
from konverge.objects.kinds.core_v1 import Secret
from konverge.operators.catalog import find
from konverge.operators.wukong import effective_spec
from konverge.operators.wukong.children.cloudinit import cloud_init_for
from konverge.operators.wukong.children.disks import claim_for, data_volume_for
from konverge.operators.wukong.children.networks import nad_for, policy_for
from konverge.operators.wukong.children.virtualmachine import services_for, snapshot_for, virtual_machine_for
from konverge.operators.wukong.resource import KINDS, Wukong, WukongSnapshot, problems
from konverge.operators.wukong.templates import merged
from tests.operators.wukong.test_spec import a_server

pytestmark = pytest.mark.spec("W-01")

GOLDEN = Path(__file__).parent / "golden"
SAMPLES = find("wukong").sample_objects()
PLURALS = {kind.resource.kind: kind.resource.plural for kind in KINDS}
TEMPLATES = {item["metadata"]["name"]: item["spec"] for item in SAMPLES if item["kind"] == "WukongTemplate"}
WUKONGS = {item["metadata"]["name"]: item for item in SAMPLES if item["kind"] == "Wukong"}


def secrets() -> dict[str, Secret]:
    """As the server keeps them: texts become data."""
    result = [from_dict(Secret, item) for item in SAMPLES if item["kind"] == "Secret"]
    for secret in result:
        secret.data = {key: base64.b64encode(text.encode()).decode() for key, text in secret.string_data.items()}
    return {secret.metadata.name: secret for secret in result}


def children(sample: dict[str, Any]) -> list[dict[str, Any]]:
    given = sample["spec"]
    whole = merged(TEMPLATES[given["template"]["name"]], given) if "template" in given else given
    wukong = from_dict(Wukong, sample | {"spec": whole})
    wukong.metadata.uid = "9d6f3c1e-7d5c-4b0e-8f5a-2f6f1f0c1234"
    assert problems(wukong) == []
    spec, result = wukong.spec, []
    for network in filter(effective_spec.needs_attachment, spec.networks):
        result.append(to_dict(nad_for(wukong, network)))
        if effective_spec.wants_policy(network):
            result.append(to_dict(policy_for(effective_spec.bridge_of(network), network.physical_interface or "")))
    for disk in spec.disks:
        builder = claim_for if effective_spec.source_of(spec, disk) is None else data_volume_for
        result.append(to_dict(builder(wukong, disk)))
    secret = cloud_init_for(wukong, secrets())
    if secret is not None:
        readable = {key: base64.b64decode(text).decode() for key, text in secret.data.items()}
        result.append({**to_dict(secret), "data": readable})
    result.append(to_dict(virtual_machine_for(wukong)))
    return [*result, *map(to_dict, services_for(wukong))]


@pytest.mark.parametrize("name", WUKONGS)
def test_children_of_a_sample(name: str) -> None:
    result, path = children(WUKONGS[name]), GOLDEN / f"{name}.yaml"
    if os.environ.get("GOLDEN") == "write":
        path.write_text(yaml.safe_dump_all(result, sort_keys=False, width=120))
    assert result == list(yaml.safe_load_all(path.read_text()))


def test_a_snapshot_keeps_its_name() -> None:
    (sample,) = [from_dict(WukongSnapshot, item) for item in SAMPLES if item["kind"] == "WukongSnapshot"]
    result = to_dict(snapshot_for(sample))
    assert result["metadata"]["name"] == sample.metadata.name
    assert result["spec"]["source"] == {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "precious-vm"}


async def test_the_server_takes_all_of_them() -> None:
    assert len(WUKONGS) == 6
    async with a_server() as api:
        for sample in SAMPLES:
            group = "/api/v1" if sample["kind"] == "Secret" else "/apis/vm.novasphere.dev/v1alpha1"
            path = f"{group}/namespaces/default/{PLURALS.get(sample['kind'], sample['kind'].lower() + 's')}"
            await api.call("POST", path, sample, query={"fieldValidation": "Strict"})
