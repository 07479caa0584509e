"""KubeVirt's own webhooks, virt-api's, take Wukong's machines and fill in what the simulated ones fill in."""

from __future__ import annotations

from pathlib import Path

import pytest

from konverge.client import ApiStatusError
from konverge.objects.codec import from_dict, to_dict
from konverge.operators.wukong.children.virtualmachine import virtual_machine_for
from konverge.operators.wukong.resource import Wukong
from konverge.sim.kubevirt.machine_rules import fill_in
from tests.real import kubevirt
from tests.real.embedded import embedded_server
from tests.real.kubevirt import Obj
from tests.real.test_real_kubevirt import SAMPLES, sample
from tests.sim.kubevirt.conftest import VM

_NAMED = ("uuid", "serial")


def filled_in(machine: Obj) -> Obj:
    """What a webhook adds; the identity of a board is random."""
    template = machine["spec"]["template"]
    inside = template["spec"]
    board = {key: bool(inside["domain"]["firmware"].get(key)) for key in _NAMED}
    notes = (template.get("metadata") or {}).get("annotations")
    return {"notes": notes, "architecture": inside["architecture"], "machine": inside["domain"]["machine"], **board}


@pytest.mark.spec("W-34", "S-22")
@pytest.mark.limit(300)
async def test_the_real_webhooks_take_what_the_operator_writes(tmp_path: Path) -> None:
    folder = kubevirt.programs("virt-api", "kubevirt-definitions")
    installed = kubevirt.printed(folder)
    with embedded_server(tmp_path) as kubeconfig:
        async with kubevirt.cluster(kubeconfig) as client:
            await kubevirt.install(client, installed)
            async with kubevirt.webhooks(client, kubeconfig, tmp_path, installed):
                for name in SAMPLES:
                    wukong = next(document for document in sample(name) if document["kind"] == "Wukong")
                    made = to_dict(virtual_machine_for(from_dict(Wukong, wukong)))
                    taken = await client.create(made, resource=VM)
                    fill_in(made, new=True)
                    assert filled_in(made) == filled_in(taken), name
                bad = to_dict(virtual_machine_for(from_dict(Wukong, sample("smallest")[0])))
                bad["metadata"]["name"] = "bad"
                bad["spec"]["template"]["spec"]["volumes"] = []
                with pytest.raises(ApiStatusError, match="virtualmachine-validator"):
                    await client.create(bad, resource=VM)
