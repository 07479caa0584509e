"""The pods of a Nacos, and what its servers say: what CheckKind looks at and CheckNacos asks."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.core_v1 import Pod
from konverge.operators.nacos import names
from konverge.operators.nacos.pods import is_going, is_outdated, is_ready, ordinal, trouble
from konverge.operators.nacos.server import PORT, Identity, NacosError, View
from konverge.operators.nacos.steps.round import Round
from konverge.runtime import controller_of

BY_APP = "app"
"""The index of pods: namespace and label."""


@dataclass(frozen=True, slots=True)
class Workload:
    """The StatefulSet and its pods, in order."""

    stateful_set: StatefulSet | None
    pods: list[Pod]

    @property
    def ready(self) -> list[Pod]:
        return [pod for pod in self.pods if is_ready(pod)]

    @property
    def outdated(self) -> list[Pod]:
        """Made from an older template. Nobody, until the controller has said which revision counts: it makes pods of a
        new template before it does, and those would look outdated."""
        if self.stateful_set is None or not self.acted_upon:
            return []
        revision = self.stateful_set.status.update_revision
        return [pod for pod in self.pods if not is_going(pod) and is_outdated(pod, revision)]

    @property
    def acted_upon(self) -> bool:
        """Its controller has seen the set as it is now."""
        found = self.stateful_set
        seen = found.status.observed_generation if found is not None else None
        return found is not None and (seen is None or seen >= found.metadata.generation)

    @property
    def with_older_secrets(self) -> set[str]:
        """The pods that were made from other Secrets than those of now."""
        if self.stateful_set is None:
            return set()
        wanted = self.stateful_set.spec.template.metadata.annotations.get(names.SECRETS_DIGEST)
        had = {pod.metadata.name: pod.metadata.annotations.get(names.SECRETS_DIGEST) for pod in self.outdated}
        return {name for name, digest in had.items() if digest != wanted}

    def pod(self, name: str) -> Pod | None:
        return next((pod for pod in self.pods if pod.metadata.name == name), None)


def pods_of(round: Round) -> list[Pod]:
    """The servers' pods: of this resource by label, and of its StatefulSet or of none at the moment."""
    found = round.ctx.indexed(Pod, BY_APP, f"{round.key.namespace}/{round.wish.name}")
    mine = []
    for pod in found:
        owner = controller_of(pod)
        if owner is None or (owner.kind == "StatefulSet" and owner.name == round.wish.name):
            mine.append(pod)
    return sorted(mine, key=ordinal)


async def look(round: Round) -> Workload:
    """The document's two requests: the StatefulSet, and the pods by label."""
    stateful_set = await round.get(StatefulSet, round.wish.name)
    round.note("LIST", "Pod", f"app={round.wish.name}")
    pods = [pod for pod in pods_of(round) if ordinal(pod) >= 0]
    workload = Workload(stateful_set, pods)
    status = round.status
    status.replicas, status.ready_replicas = len(pods), len(workload.ready)
    status.selector = ",".join(f"{key}={value}" for key, value in names.selector(round.wish.name).items())
    return workload


async def ask(round: Round, workload: Workload, identity: Identity | None) -> list[View]:
    """Every ready pod is asked at the same time; the others are in the answer with the reason why not."""
    async with asyncio.TaskGroup() as group:
        asking = [
            group.create_task(_ask(round, pod, identity), name=f"ask {pod.metadata.name}") for pod in workload.pods
        ]
    return [task.result() for task in asking]


async def _ask(round: Round, pod: Pod, identity: Identity | None) -> View:
    name, address = pod.metadata.name, pod.status.pod_ip or ""
    if not is_ready(pod) or not address:
        why = trouble(pod).removeprefix(name).lstrip(": ").removeprefix("is ")
        return View(pod=name, address=address, error=why or "has no address yet")
    try:
        async with round.tools.gate:
            round.asked.append(name)
            members = await round.tools.servers.nodes(
                address, port=PORT, identity=identity, timeout=round.options.call_timeout
            )
    except NacosError as error:
        return View(pod=name, address=address, error=str(error), forbidden=error.reason == "Forbidden")
    return View(pod=name, address=address, members=members)
