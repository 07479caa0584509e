"""KubeVirt's own virt-controller and the simulated one, with the same machines: what they say is the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from konverge.client import Client, MergePatch
from konverge.sim.kubevirt import QUICK, SimulatedKubeVirt
from tests.real import kubevirt
from tests.real.embedded import embedded_server
from tests.real.kubevirt import Obj, until
from tests.real.sides import differences
from tests.sim.kubevirt.conftest import DV, SPACE, VM, VMI, claim, data_volume, machine

_OF_THE_HANDLER = ("LiveMigratable", "AgentConnected", "StorageLiveMigratable")


def shows(word: str, **status: Any) -> Any:
    """Whether a machine shows this word, and has these in its status."""

    def holds(vm: Obj) -> bool:
        seen = vm.get("status") or {}
        if not seen.get("conditions"):  # the definition has `Stopped` as a default: nobody has looked at it yet
            return False
        return seen.get("printableStatus") == word and all((seen.get(key) or None) == status[key] for key in status)

    return holds


def seen(obj: Obj) -> Obj:
    """What an operator reads, without times and without what virt-handler adds."""
    status = obj["status"]
    conditions = {
        entry["type"]: (entry["status"], entry.get("reason"), entry.get("message"))
        for entry in status.get("conditions", [])
        if entry["type"] not in _OF_THE_HANDLER
    }
    kept = {key: status.get(key) or None for key in ("printableStatus", "phase", "runStrategy", "created", "ready")}
    firmware = (obj["spec"].get("template") or obj)["spec"]["domain"].get("firmware")
    return {**kept, "conditions": conditions, "firmware": firmware, "labels": sorted(obj["metadata"].get("labels", {}))}


async def strategy(client: Client, name: str, word: str) -> None:
    await client.patch(VM, name, MergePatch({"spec": {"runStrategy": word}}), SPACE)


async def started_and_stopped(client: Client) -> list[Obj]:
    """Off, on with an imported disk, and off again."""
    await client.create(machine("web", "root", runStrategy="Halted"))
    told = [seen(await until(client, VM, "web", SPACE, shows("Stopped")))]
    await client.create(data_volume("root"))
    await until(client, DV, "root", SPACE, lambda dv: (dv.get("status") or {}).get("phase") == "Succeeded")
    await strategy(client, "web", "Always")
    told.append(seen(await until(client, VM, "web", SPACE, shows("Running", ready=True))))
    told.append(seen(await client.get(VMI, "web", SPACE)))
    await strategy(client, "web", "Halted")
    await until(client, VMI, "web", SPACE, lambda vmi: not vmi)
    return [*told, seen(await until(client, VM, "web", SPACE, shows("Stopped", created=None)))]


async def without_its_claim(client: Client) -> list[Obj]:
    await client.create(machine("lonely", "nowhere"))
    vm = await until(client, VM, "lonely", SPACE, shows("ErrorPvcNotFound"))
    told = [seen(vm), seen(await client.get(VMI, "lonely", SPACE))]
    await client.create(claim("nowhere"))
    return [*told, seen(await until(client, VM, "lonely", SPACE, shows("Running", ready=True)))]


async def deleted_instances(client: Client) -> list[Obj]:
    """Where only failures are a reason to start again, an instance that was deleted is none."""
    told = []
    for name, word in (("rerun", "RerunOnFailure"), ("always", "Always")):
        await client.create(machine(name, runStrategy=word))
        await until(client, VM, name, SPACE, shows("Running", ready=True))
        first = (await client.get(VMI, name, SPACE))["metadata"]["uid"]
        await client.delete(VMI, name, SPACE)
        if word == "Always":
            await until(client, VMI, name, SPACE, lambda vmi: vmi and vmi["metadata"]["uid"] != first)  # noqa: B023
            told.append(seen(await until(client, VM, name, SPACE, shows("Running", ready=True))))
        else:
            await until(client, VMI, name, SPACE, lambda vmi: not vmi)
            told.append(seen(await until(client, VM, name, SPACE, shows("Stopped", created=None))))
    return told


async def templates_of_volumes(client: Client) -> list[Obj]:
    """The instance waits for the import."""
    template = {"metadata": {"name": "own"}, "spec": data_volume("own")["spec"]}
    made = machine("whole", "own", dataVolumeTemplates=[template])
    made["spec"]["template"]["spec"]["volumes"] = [{"name": "own", "dataVolume": {"name": "own"}}]
    await client.create(made)
    told = [seen(await until(client, VM, "whole", SPACE, shows("Provisioning")))]
    told.append(seen(await until(client, VM, "whole", SPACE, shows("Running", ready=True))))
    await client.delete(VM, "whole", SPACE)
    await until(client, VM, "whole", SPACE, lambda vm: not vm)
    return told


STORIES = (started_and_stopped, without_its_claim, deleted_instances, templates_of_volumes)


async def tell(client: Client) -> dict[str, list[Obj]]:
    return {story.__name__: await story(client) for story in STORIES}


@pytest.mark.spec("W-33", "S-22")
@pytest.mark.limit(400)
async def test_the_simulated_controller_says_what_the_real_one_says(tmp_path: Path) -> None:
    folder = kubevirt.programs("virt-controller", "kubevirt-definitions")
    installed = kubevirt.printed(folder)
    for side in ("real", "simulated"):
        (tmp_path / side).mkdir()
    with embedded_server(tmp_path / "real") as kubeconfig:
        async with kubevirt.cluster(kubeconfig) as client:
            await kubevirt.install(client, installed)
            with kubevirt.controller(kubeconfig, tmp_path):
                async with kubevirt.handling(client):
                    real = await tell(client)
    with embedded_server(tmp_path / "simulated") as kubeconfig:
        async with kubevirt.cluster(kubeconfig) as client, SimulatedKubeVirt(client, parts=["kubevirt"], timings=QUICK):
            simulated = await tell(client)
    assert "\n".join(differences(simulated, real)) == ""
