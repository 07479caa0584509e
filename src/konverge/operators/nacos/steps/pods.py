"""The pods of a Nacos and their StatefulSet, as the steps see them."""

from __future__ import annotations

import msgspec

from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.core_v1 import Pod, PodCondition
from konverge.objects.times import seconds_since
from konverge.operators.nacos import names
from konverge.operators.nacos.steps.state import ReconcileState
from konverge.runtime import controller_of

BY_APP = "app"
"""The index of pods: namespace and label."""
REVISION = "controller-revision-hash"
"""The label with the revision of the template, as the StatefulSet controller sets it."""


def is_ready(pod: Pod) -> bool:
    """By the Ready condition, at any position: Kubernetes adds conditions from time to time."""
    condition = _ready_condition(pod)
    return condition is not None and condition.status == "True" and not is_terminating(pod)


def ready_for(pod: Pod) -> float:
    """Seconds; 0 when it is not ready."""
    return seconds_since(_ready_changed(pod)) if is_ready(pod) else 0.0


def _ready_changed(pod: Pod) -> str | None:
    condition = _ready_condition(pod)
    return condition.last_transition_time if condition is not None else None


def _ready_condition(pod: Pod) -> PodCondition | None:
    return next((condition for condition in pod.status.conditions if condition.type == "Ready"), None)


def is_terminating(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None


def _is_outdated(pod: Pod, revision: str | None) -> bool:
    """Created from an older template than the current one."""
    return bool(revision) and pod.metadata.labels.get(REVISION, revision) != revision


def ordinal(pod: Pod) -> int:
    return ordinal_of(pod.metadata.name)


def ordinal_of(name: str) -> int:
    """The number of a pod of this name in its StatefulSet; -1: none."""
    number = name.rpartition("-")[2]
    return int(number) if number.isdecimal() else -1


def unready_for(pod: Pod) -> float:
    """Seconds for which a pod has been running without being ready; 0 when it is ready, or never ran."""
    if is_ready(pod) or pod.status.phase != "Running" or _waiting_reason(pod):
        return 0.0
    return seconds_since(_ready_changed(pod) or pod.metadata.creation_timestamp)


def _waiting_reason(pod: Pod) -> str:
    """Why a container does not run, as the kubelet reports it; another pod in its place would wait for the same."""
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        waiting = status.state.waiting if status.state is not None else None
        if waiting is not None and waiting.reason not in (None, "ContainerCreating", "PodInitializing"):
            return f"{waiting.reason}: {waiting.message}" if waiting.message else f"{waiting.reason}"
    return ""


def why_not_ready(pod: Pod) -> str:
    """A short reason for a pod that is not ready; empty when it is."""
    if is_ready(pod):
        return ""
    if is_terminating(pod):
        return f"{pod.metadata.name} is being deleted"
    if reason := _waiting_reason(pod):
        return f"{pod.metadata.name}: {reason}"
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            return f"{pod.metadata.name}: {condition.reason}: {condition.message or 'no node takes it'}"
    return f"{pod.metadata.name} is not ready"


class Workload(msgspec.Struct, frozen=True):
    """The StatefulSet and its pods, in order."""

    stateful_set: StatefulSet | None
    pods: list[Pod]

    @property
    def ready(self) -> list[Pod]:
        return [pod for pod in self.pods if is_ready(pod)]

    @property
    def outdated(self) -> list[Pod]:
        """Created from an older template. None until the controller has reported the current revision: it creates pods
        of a new template before it does, and those would look outdated."""
        if self.stateful_set is None or not self.observed:
            return []
        revision = self.stateful_set.status.update_revision
        return [pod for pod in self.pods if not is_terminating(pod) and _is_outdated(pod, revision)]

    @property
    def observed(self) -> bool:
        """The controller has seen the current StatefulSet."""
        if self.stateful_set is None:
            return False
        generation = self.stateful_set.status.observed_generation
        return generation is None or generation >= self.stateful_set.metadata.generation

    @property
    def of_one_template(self) -> bool:
        """Every pod is of the current template, also those that are being deleted; not known before the controller has
        seen it."""
        if self.stateful_set is None or not self.observed:
            return False
        revision = self.stateful_set.status.update_revision
        return not any(_is_outdated(pod, revision) for pod in self.pods)

    @property
    def with_older_secrets(self) -> set[str]:
        """The pods that were created from other Secrets than the current ones."""
        if self.stateful_set is None:
            return set()
        current = self.stateful_set.spec.template.metadata.annotations.get(names.SECRETS_DIGEST)
        digests = {pod.metadata.name: pod.metadata.annotations.get(names.SECRETS_DIGEST) for pod in self.outdated}
        return {name for name, digest in digests.items() if digest != current}

    def pod(self, name: str) -> Pod | None:
        return next((pod for pod in self.pods if pod.metadata.name == name), None)


def pods_of(state: ReconcileState) -> list[Pod]:
    """The servers' pods: of this resource by label, and owned by its StatefulSet or, for the moment, by none."""
    pods = []
    for pod in state.reads.indexed(Pod, BY_APP, f"{state.key.namespace}/{state.desired.name}"):
        owner = controller_of(pod)
        if owner is None or (owner.kind == "StatefulSet" and owner.name == state.desired.name):
            pods.append(pod)
    return sorted(pods, key=ordinal)


async def read_workload(state: ReconcileState) -> Workload:
    """The document's two requests: the StatefulSet, and the pods by label."""
    stateful_set = await state.reads.get(StatefulSet, state.desired.name)
    pods = [pod for pod in pods_of(state) if ordinal(pod) >= 0]
    workload = Workload(stateful_set, pods)
    status = state.status
    status.replicas, status.ready_replicas = len(pods), len(workload.ready)
    status.selector = ",".join(f"{key}={value}" for key, value in names.selector(state.desired.name).items())
    return workload
