"""A story that a Nacos must survive: its owner changes the wish, the world breaks things, the operator is killed.

At the end everything is mended, and all must be as declared; or one thing stays broken, and the resource must be Failed
and say which. One seed gives one story; `konverge.sim.run` plays it on virtual time.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from random import Random
from typing import Any

from konverge import clock
from konverge.client import Client, Static
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.core_v1 import ConfigMap, Pod, Service
from konverge.operators.nacos.server import HttpNacosServers
from konverge.operators.nacos.steps.pods import is_ready as pod_is_ready
from konverge.sim import run
from konverge.sim.databases import SimulatedServer
from konverge.sim.faults import Faulty, Plan
from konverge.sim.kubelet.behaviour import Rule
from konverge.sim.nacos import QUICK, Fault, SimulatedNacos
from tests.operators.nacos.test_faults import POSTGRES, replace_secret, with_postgres
from tests.operators.nacos.world import CLUSTER, SPACE, World, a_world, condition, is_ready

TAGS = ("v2.4.3", "v2.5.0", "v3.0.3")
CONTROLLERS = (
    "disruption",
    "garbage-collector",
    "node-lifecycle",
    "pod-garbage-collector",
    "pv-protection",
    "pvc-protection",
    "serviceaccount",
    "statefulset",
    "taint-eviction",
)
"""Of Kubernetes' own, those that a Nacos meets: a story without the others takes three quarters of the time."""
NEEDED = 3600.0
"""Simulated seconds within which everything must be well again: several rollouts, and healing in between."""


def tell(seed: int) -> list[str]:
    """What happened; raises when it did not end as it should."""
    happened: list[str] = []
    try:
        run(Story(seed, happened).play(), seed=seed)
    except AssertionError as error:
        raise AssertionError(f"seed {seed} after {'; '.join(happened)}: {error}") from error
    return happened


class Story:
    """One seed's."""

    def __init__(self, seed: int, happened: list[str]) -> None:
        self.rng: Random = clock.seeded(seed)
        self.seed = seed
        self.happened = happened
        self.postgres = self.rng.random() < 0.4
        self.replicas = 3
        self.tag = self.rng.choice(TAGS[:2])
        self.password = "first"
        self.world: World
        self.nacos: SimulatedNacos
        self.server: SimulatedServer

    async def play(self) -> None:
        rules = [Rule(image="*:v2.4.9", behave="image-pull-error")]
        async with a_world(nodes=5, rules=rules, events=False, controllers=CONTROLLERS) as self.world:
            nacos = SimulatedNacos(self.world.cluster, databases=self.world.databases, timings=QUICK, seed=self.seed)
            async with nacos as self.nacos:
                self.world.asked = HttpNacosServers(nacos.connect)
                self.server = await with_postgres(self.world)
                async with AsyncExitStack() as operator:
                    await self._start_operator(operator)
                    await self._live(operator)
                    await self._end_well()
                    if self.rng.random() < 0.25:
                        await self._end_badly()

    async def _start_operator(self, stack: AsyncExitStack) -> None:
        """A process of the operator, with its own troubles on the way to the API server."""
        server = self.world.cluster.server
        plan = Plan.of(self.rng.randrange(1 << 30), faults=6, exchanges=200)
        faulty = Faulty(server.transport, plan.faults)
        client = await stack.enter_async_context(Client(faulty, credentials=Static.bearer(server.token)))
        await stack.enter_async_context(self.world.operating(client=client, check_permissions=False))

    async def _live(self, operator: AsyncExitStack) -> None:
        base: dict[str, Any] = POSTGRES if self.postgres else CLUSTER
        await self.world.create("nacos", {**base, "image": f"nacos/nacos-server:{self.tag}"})
        self.happened.append(f"created on {'postgres' if self.postgres else 'embedded storage'}, {self.tag}")
        for _ in range(self.rng.randrange(3, 9)):
            await self.world.advance(self.rng.choice((0.5, 3.0, 10.0, 40.0, 120.0)))
            if self.rng.random() < 0.15:
                self.happened.append("operator restarted")
                await operator.aclose()
                await self._start_operator(operator)
                continue
            await self._something()

    async def _something(self) -> None:
        deeds = [self._scale, self._upgrade, self._configure, self._vandalise, self._hurt_a_server, self._cut]
        if self.postgres:
            deeds += [self._hurt_the_database, self._rotate]
        await self.rng.choice(deeds)()

    # -------------------------------------------------------------- what the owner does

    async def _scale(self) -> None:
        self.replicas = self.rng.choice((3, 4, 5))
        self.happened.append(f"scaled to {self.replicas}")
        await self.world.change("nacos", replicas=self.replicas)

    async def _upgrade(self) -> None:
        self.tag = self.rng.choice(TAGS)
        self.happened.append(f"image {self.tag}")
        await self.world.change("nacos", image=f"nacos/nacos-server:{self.tag}")

    async def _configure(self) -> None:
        number = self.rng.randrange(100)
        self.happened.append(f"config {number}")
        await self.world.change("nacos", config=f"number={number}\n")

    async def _rotate(self) -> None:
        self.password = f"word-{self.rng.randrange(1000)}"
        self.happened.append("rotated")
        await replace_secret(self.world, "admin", username="nacos", password=self.password)

    # -------------------------------------------------------------- what the world does

    async def _vandalise(self) -> None:
        kind: Any = self.rng.choice((StatefulSet, Service, ConfigMap, Pod))
        found = [one.metadata.name for one in await self.world.client.list(kind, SPACE, label_selector="app=nacos")]
        if found:
            name = self.rng.choice(sorted(found))
            self.happened.append(f"{kind.__name__} {name} deleted")
            await self.world.client.delete(kind, name, SPACE, propagation="Background")

    async def _hurt_a_server(self) -> None:
        pods = [one.metadata.name for one in await self.world.client.list(Pod, SPACE, label_selector="app=nacos")]
        if not pods:
            return
        pod = self.rng.choice(sorted(pods))
        deed = self.rng.choice(("kill", "freeze", "spoil"))
        self.happened.append(f"{deed} {pod}")
        try:
            if deed == "kill":
                self.nacos.kill(pod)
            elif deed == "freeze":
                self.nacos.freeze(pod)
            else:
                self.nacos.spoil(pod, self.rng.choice(list(Fault)))
        except LookupError:
            self.happened.append("which did not run")

    async def _cut(self) -> None:
        names = [f"nacos-{number}" for number in range(3)]
        one = self.rng.choice(names)
        self.happened.append(f"{one} cut off")
        try:
            self.nacos.split([one], [name for name in names if name != one])
        except LookupError:
            self.happened.append("which did not run")

    async def _hurt_the_database(self) -> None:
        self.happened.append("database hurt")
        match self.rng.choice(("down", "standby", "slow", "full")):
            case "down":
                self.server.down = True
            case "standby":
                self.server.read_only = "standby"
            case "slow":
                self.server.freeze()
            case "full":
                self.server.full = True

    # -------------------------------------------------------------- how it ends

    async def _mend(self) -> None:
        self.nacos.mend()
        self.nacos.heal()
        for pod in await self.world.client.list(Pod, SPACE, label_selector="app=nacos"):
            try:
                self.nacos.thaw(pod.metadata.name)
            except LookupError:
                continue
        self.server.down = self.server.full = False
        self.server.read_only = ""
        self.server.thaw()

    async def _end_well(self) -> None:
        await self.world.advance(self.rng.choice((1.0, 60.0, 300.0)))
        await self._mend()
        waited = 0.0
        while not await self._as_declared():
            assert waited < NEEDED, f"not as declared: {await self._state()}"
            await self.world.advance(5.0)
            waited += 5.0
        await self.world.advance(120.0)
        revision = self.world.cluster.server.store.tables["nacos.io/nacos"].revision
        await self.world.advance(300.0)
        assert self.world.cluster.server.store.tables["nacos.io/nacos"].revision == revision, "writes without a cause"
        assert await self._as_declared(), f"no longer as declared: {await self._state()}"

    async def _as_declared(self) -> bool:
        found = await self.world.nacos("nacos")
        if found.status.phase != "Running" or not is_ready(found):
            return False
        pods = (await self.world.client.list(Pod, SPACE, label_selector="app=nacos")).items
        images = {pod.spec.containers[0].image for pod in pods}
        return (
            len(pods) == self.replicas == len(found.status.conditions)
            and images == {f"nacos/nacos-server:{self.tag}"}
            and found.status.version == self.tag[1:]
            and found.status.leader == self.nacos.leader()
            and self._raft_group() == {f"nacos-{number}" for number in range(self.replicas)}
            and (not self.postgres or self.server.databases["nacos"].accepts("nacos", self.password))
        )

    def _raft_group(self) -> set[str]:
        """Whom the leader counts: also who left, until it is taken out, and nobody who stays out."""
        leader = self.nacos.leader()
        return {address.partition(".")[0] for address in self.nacos.member(leader).peers} if leader else set()

    async def _state(self) -> str:
        found = await self.world.nacos("nacos")
        pods = await self.world.client.list(Pod, SPACE, label_selector="app=nacos")
        shown = {pod.metadata.name: f"{pod.status.phase}, {'' if pod_is_ready(pod) else 'not '}ready" for pod in pods}
        last = found.status.event[-1].message if found.status.event else ""
        group = sorted(self._raft_group())
        return f"{found.status.phase}, wished {self.replicas} of {self.tag}, {shown}, raft group {group}, {last}"

    async def _end_badly(self) -> None:
        """One thing is broken for good, and the resource says which."""
        if self.postgres:
            self.server.down, words = True, "refused"
        else:
            await self.world.change("nacos", image="nacos/nacos-server:v2.4.9")
            words = "ImagePull"
        self.happened.append(f"broken for good: {words}")
        found = await self.world.until("nacos", "Failed", limit=900.0)
        assert words in found.status.event[-1].message, await self._state()
        assert condition(found, "Ready")[0] == "False"
        assert asyncio.get_running_loop().time() > 0
