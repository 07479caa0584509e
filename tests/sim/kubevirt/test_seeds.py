"""Whatever is done to a machine, and whenever: in the end it is as desired, and nothing of it is left behind."""

from __future__ import annotations

import pytest

from konverge import clock
from konverge.client import ApiStatusError
from konverge.objects.resource import Resource
from konverge.sim.kubevirt.subresources import GROUP
from tests.sim.kubevirt.conftest import DV, SPACE, VM, VMI, data_volume, machine, playing

pytestmark = [pytest.mark.virtual, pytest.mark.spec("S-22")]
CALLS = Resource(GROUP, "v1", "VirtualMachine", "virtualmachines")
STRATEGIES = ("Always", "Halted", "Manual", "RerunOnFailure", "Once")
FAULTS = ("", "crash times=1", "shutdown after=3", "unschedulable seconds=4", "image-pull", "no-agent")


@pytest.mark.parametrize("seed", range(4))
async def test_a_machine_ends_as_it_is_wished(seed: int) -> None:
    rng = clock.seeded(seed)
    way, kind = rng.choice(["populator", "legacy"]), rng.choice(["standard", "standard-wait"])
    async with playing(cdi=way, rollout=rng.choice(["Stage", "LiveUpdate"]), seed=seed) as play:
        await play.client.create(data_volume("root", kind=kind))
        await play.client.create(machine("web-vm", "root"))

        async def act() -> None:
            match rng.randrange(4):
                case 0:
                    await play.patch(VM, "web-vm", {"spec": {"runStrategy": rng.choice(STRATEGIES)}})
                case 1:
                    await play.client.delete(VMI, "web-vm", SPACE)
                case 2:
                    action = rng.choice(("start", "stop", "restart", "migrate"))
                    await play.client.update_sub(CALLS, "web-vm", action, {}, SPACE)
                case 3:
                    await play.faults(vm=rng.choice(FAULTS))
                case 4:
                    size = {"domain": {"cpu": {"sockets": rng.randint(1, 8)}}}
                    await play.patch(VM, "web-vm", {"spec": {"template": {"spec": size}}})
                case 5:
                    for pod in await play.client.list("pods", SPACE):
                        await play.client.delete("pods", pod["metadata"]["name"], SPACE)

        for _ in range(12):
            try:
                await act()
            except ApiStatusError:  # refused: also an answer
                await play.after(0)
            await play.after(rng.uniform(0, 25))
        await play.faults()
        await play.patch(VM, "web-vm", {"spec": {"runStrategy": "Always"}, "status": {"stateChangeRequests": None}})
        await play.patch(VM, "web-vm", {"status": {"stateChangeRequests": None}}, subresource="status")
        await play.after(500)
        assert (await play.shown(), await play.phase(VMI), await play.phase(DV, "root")) == (
            "Running",
            "Running",
            "Succeeded",
        )
        assert len(await play.client.list("pods", SPACE)) == 1
        await play.patch(VM, "web-vm", {"spec": {"runStrategy": "Halted"}})
        await play.after(60)
        assert (await play.shown(), await play.find(VMI), len(await play.client.list("pods", SPACE))) == (
            "Stopped",
            None,
            0,
        )
        await play.client.delete(VM, "web-vm", SPACE)
        await play.client.delete(DV, "root", SPACE)
        await play.after(60)
        for plural in ("virtualmachines", "virtualmachineinstances", "datavolumes", "persistentvolumeclaims", "pods"):
            assert len(await play.client.list(plural, SPACE)) == 0
