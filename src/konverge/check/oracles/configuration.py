"""Pods get the configuration that the operator writes for them.

An operator changes a ConfigMap or a Secret, and the pods that use it live on. Environment variables, single files
(`subPath`) and what only an init container mounts are read when a container starts, and never again. A mounted folder
follows its ConfigMap, but few programs read their files twice: so it counts where nothing makes them do it. Whoever has
a container that reloads, is talked to by the operator in the same step, or has its pod written to, may well know.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from konverge.check.folding import folded
from konverge.check.model import Alarm, Checkpoint, Obj, Run
from konverge.check.oracles.desired import Rested, differing, is_own, rests, says_unready
from konverge.check.oracles.history import step_of
from konverge.check.reference import Reference

_KINDS = {"configmaps": ("configMap", "name"), "secrets": ("secret", "secretName")}
"""The name of a volume's source, and of the name in it."""
_DATA = ("data", "binaryData", "stringData")
_SCALED = ("apps/statefulsets ", "apps/deployments ")
_TALKS = ("/pods/exec", "/pods/proxy", "/pods/portforward", "/pods/attach")


def configuration(run: Run, reference: Reference) -> Iterator[Alarm]:
    """One alarm per ConfigMap or Secret whose new content no pod of before gets."""
    if run.plan.perturbations:
        return  # `state` judges what a fault leads to
    said: set[str] = set()
    for before, now in pairwise(rests(run)):
        if not now.step.about or now.step.expect or now.checkpoint.refused or before.step.expect:
            continue
        if not (before.checkpoint.rested and now.checkpoint.rested):
            continue
        for key, changed in _rewritten(before, now, run, reference):
            how, pods = _left_behind(key, changed, before.checkpoint, now.checkpoint, run)
            if pods and folded(key) not in said:
                said.add(folded(key))
                low = _is_scaled(before.checkpoint, now.checkpoint) or _is_held_up(before.checkpoint, now)
                yield _alarm(key, how, pods, now, low=low or _is_halted(pods, before.checkpoint, now))


def _rewritten(before: Rested, now: Rested, run: Run, reference: Reference) -> Iterator[tuple[str, set[str]]]:
    """Objects with other content than before, by the operator, and the entries that are different."""
    differing_keys = {
        item.key
        for item in differing(before.checkpoint, now.checkpoint, run, reference)
        if item.path.partition(".")[0] in _DATA
    }
    step = step_of(run, now.checkpoint)
    mine = {str(change.ref) for change in run.changes if change.step == step and change.writer == "operator"}
    for key, obj in now.checkpoint.state.items():
        old = before.checkpoint.state.get(key)
        if old is None or key not in mine or folded(key) not in differing_keys or key.partition(" ")[0] not in _KINDS:
            continue
        if old["metadata"].get("uid") == obj["metadata"].get("uid"):
            ours, theirs = _content(old), _content(obj)
            yield key, {name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name)}


def _content(obj: Obj) -> dict[str, Any]:
    return {name: value for part in _DATA for name, value in (obj.get(part) or {}).items()}


def _left_behind(key: str, changed: set[str], before: Checkpoint, now: Checkpoint, run: Run) -> tuple[str, list[str]]:
    """Pods that were there before and use what was changed; and how they use it."""
    kind, _, place = key.partition(" ")
    namespace, _, name = place.rpartition("/")
    by_use: dict[str, list[str]] = {"": [], "start": [], "folder": []}
    for pod_key, pod in now.state.items():
        old = before.state.get(pod_key)
        if pod_key.startswith(f"pods {namespace}/") and old is not None and _lives_on(old, pod):
            by_use[_use(pod["spec"], kind, name, changed)].append(pod_key)
    talks = _is_talked_to(run, before, now)
    if by_use["start"] and not (talks and kind == "secrets"):  # a password is changed by whoever knows the old one
        return "start", by_use["start"]
    if talks or kind == "secrets":  # certificates are read again by most programs
        return "folder", []
    return "folder", [item for item in by_use["folder"] if not _is_reloaded(item, now, run)]


def _lives_on(old: Obj, pod: Obj) -> bool:
    same = old["metadata"].get("uid") == pod["metadata"].get("uid")
    running = (pod.get("status") or {}).get("phase") == "Running"
    return same and running and not pod["metadata"].get("deletionTimestamp")


def _use(spec: Obj, kind: str, name: str, changed: set[str]) -> str:
    """How a pod uses entries of an object: at its "start", as a "folder" that follows, or not at all."""
    first = [item for item in spec.get("initContainers") or () if item.get("restartPolicy") != "Always"]
    containers = [item for item in (*(spec.get("initContainers") or ()), *spec["containers"]) if item not in first]
    if any(_in_environment(item, kind, name, changed) for item in (*first, *containers)):
        return "start"
    volumes = {volume["name"] for volume in spec.get("volumes") or () if _in_volume(volume, kind, name, changed)}
    if any(not _is_single(mount) for mount in _mounts(containers, volumes)):
        return "folder"
    return "start" if _mounts((*first, *containers), volumes) else ""


def _mounts(containers: Iterable[Obj], volumes: set[str]) -> list[Obj]:
    return [mount for item in containers for mount in item.get("volumeMounts") or () if mount["name"] in volumes]


def _is_single(mount: Obj) -> bool:
    return bool(mount.get("subPath") or mount.get("subPathExpr"))


def _in_environment(container: Obj, kind: str, name: str, changed: set[str]) -> bool:
    source, _ = _KINDS[kind]
    for item in container.get("envFrom") or ():
        if (item.get(f"{source}Ref") or {}).get("name") == name:
            return True
    references = [(item.get("valueFrom") or {}).get(f"{source}KeyRef") or {} for item in container.get("env") or ()]
    return any(item.get("name") == name and item.get("key") in changed for item in references)


def _in_volume(volume: Obj, kind: str, name: str, changed: set[str]) -> bool:
    source, named = _KINDS[kind]
    direct = volume.get(source) or {}
    if direct.get(named) == name:
        return _shows(direct, changed)
    projected = [item.get(source) or {} for item in (volume.get("projected") or {}).get("sources") or ()]
    return any(item.get("name") == name and _shows(item, changed) for item in projected)


def _shows(source: Obj, changed: set[str]) -> bool:
    items = source.get("items")
    return items is None or any(item.get("key") in changed for item in items)


def _is_talked_to(run: Run, before: Checkpoint, now: Checkpoint) -> bool:
    """Whether the operator has spoken with its application in a step: it may have told it."""
    step = step_of(run, now)
    everywhere = {step_of(run, checkpoint) for checkpoint in run.checkpoints}
    if any(step in steps and not everywhere.issubset(steps) for steps in run.applications.values()):
        return True  # who looks at it in every step says nothing new by that
    if any(f"get {resource}" in run.reads for resource in _TALKS):  # over WebSockets; when is not known
        return True
    return any(item.resource in _TALKS and before.time < item.began <= now.time for item in run.exchanges)


_RELOADS = re.compile(r"reload|config-?(sync|watch)|inotify", re.IGNORECASE)


def _is_reloaded(pod_key: str, now: Checkpoint, run: Run) -> bool:
    """Whether a container of the pod says that it reloads, or the operator has written to the pod itself."""
    spec = now.state[pod_key]["spec"]
    for item in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        texts = [item.get("name", ""), item.get("image", ""), *(item.get("command") or ()), *(item.get("args") or ())]
        if any(_RELOADS.search(str(text)) for text in texts):
            return True
    step = step_of(run, now)
    return any(
        change.step == step and change.writer == "operator" and str(change.ref) == pod_key for change in run.changes
    )


_WHY = {
    "start": "they read it when they start, and never again",
    "folder": "nothing makes them read it again",
}


def _is_scaled(before: Checkpoint, now: Checkpoint) -> bool:
    """A workload has more or fewer pods: what its configuration says of their number is for those that join."""
    return any(
        obj["spec"].get("replicas") != before.state[key]["spec"].get("replicas")
        for key, obj in now.state.items()
        if key.startswith(_SCALED) and key in before.state
    )


def _is_held_up(before: Checkpoint, now: Rested) -> bool:
    """The custom resource was not ready before, and says so still: who replaces pods one by one waits for that."""
    own = [key for key in now.checkpoint.state if is_own(key, now.step) and key in before.state]
    return any(says_unready(before.state[key]) and says_unready(now.checkpoint.state[key]) for key in own)


def _is_halted(pods: list[str], before: Checkpoint, now: Rested) -> bool:
    """One of the same pods was replaced and is not ready with the new content, and the custom resource says that it is
    not: who replaces pods one by one goes no further."""
    state = now.checkpoint.state
    owners = {_owner(state[key]) for key in pods} - {""}
    newer = [pod for key, pod in state.items() if key.startswith("pods ") and _uid(pod) != _uid(before.state.get(key))]
    return any(_owner(pod) in owners and not _is_ready(pod) for pod in newer) and any(
        says_unready(obj) for key, obj in state.items() if is_own(key, now.step)
    )


def _uid(obj: Obj | None) -> str:
    return "" if obj is None else str(obj["metadata"].get("uid", ""))


def _owner(pod: Obj) -> str:
    """The uid of the controller that made it."""
    references = pod["metadata"].get("ownerReferences") or ()
    return next((str(item["uid"]) for item in references if item.get("controller")), "")


def _is_ready(pod: Obj) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(item.get("type") == "Ready" and item.get("status") == "True" for item in conditions)


def _alarm(key: str, how: str, pods: list[str], now: Rested, *, low: bool) -> Alarm:
    others = f" and {len(pods) - 1} more" if len(pods) > 1 else ""
    return Alarm(
        oracle="configuration",
        severity="low" if low else "medium",
        object=folded(key),
        sentence=f"{now.step.about} was changed and with it {key}, but {pods[0]}{others} go on as they started: "
        f"{_WHY[how]}",
        step=now.step.name,
        expected="other pods, or the same ones told",
        actual=len(pods),
    )
