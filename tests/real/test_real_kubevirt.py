"""KubeVirt's own virt-controller on both API servers, with Wukong's machines.

docs/wukong.md says what stands in for virt-handler, CDI and the nodes.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge.operators.wukong.operator import OPERATOR, controllers
from konverge.operators.wukong.options import Options
from konverge.operators.wukong.resource import Wukong
from konverge.runtime import Manager
from tests.real import kubevirt
from tests.real.kubevirt import Obj, until
from tests.sim.kubevirt.conftest import SPACE, VM, VMI

SAMPLES = ("smallest", "ubuntu", "static", "windows")


def sample(name: str) -> list[Obj]:
    text = (resources.files("konverge.operators.wukong") / "samples" / f"{name}.yaml").read_text()
    return [document for document in yaml.safe_load_all(text) if document]


def has(word: str) -> Any:
    return lambda vm: (vm.get("status") or {}).get("printableStatus") == word


@pytest.mark.spec("W-32")
@pytest.mark.limit(400)
async def test_machines_of_wukong_live_under_the_real_controller(either_kubeconfig: Path, tmp_path: Path) -> None:
    folder = kubevirt.programs("virt-controller", "kubevirt-definitions")
    installed = kubevirt.printed(folder)
    async with kubevirt.cluster(either_kubeconfig) as client:
        await kubevirt.install(client, installed)
        for definition in OPERATOR.definitions():
            await client.create(definition)
        manager = Manager(client, name=OPERATOR.identity)
        for controller in controllers(Options()):
            manager.add(controller)
        with kubevirt.controller(either_kubeconfig, tmp_path):
            async with kubevirt.handling(client), manager.running():
                for name in SAMPLES:
                    for document in sample(name):
                        await client.create(document)
                for name in SAMPLES:
                    await until(client, Wukong.resource, name, SPACE, lambda obj: phase(obj) == "Running")
                    await until(client, VM, f"{name}-vm", SPACE, has("Running"))
                for name in SAMPLES:
                    await client.delete(Wukong, name, SPACE)
                for name in SAMPLES:
                    await until(client, Wukong.resource, name, SPACE, lambda obj: not obj)
        assert list(await client.list(VM, SPACE)) == list(await client.list(VMI, SPACE)) == []
    numbers = manager.engines["wukong"].numbers
    assert (numbers.panics, numbers.terminal_errors) == (0, 0)


def phase(obj: Obj) -> str:
    return str((obj.get("status") or {}).get("phase", ""))
