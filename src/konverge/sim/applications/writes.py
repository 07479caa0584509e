"""What programs in pods write to the API: annotations, labels and conditions of their own pods, by rule.

The mongodb agent, say, writes the version of the configuration that it has reached to its pod, and the operator waits
for it. Values may refer to a Secret or a ConfigMap; they are written again when it changes.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from typing import Any

from konverge.client import Conflict, MergePatch, NotFound, StrategicPatch
from konverge.client.patches import Patch
from konverge.objects.codec import to_dict
from konverge.objects.kinds.core_v1 import ConfigMap, Pod, Secret
from konverge.runtime import Context, Controller, Request, Result, Watches
from konverge.sim.applications.commands import image_of
from konverge.sim.applications.owners import Obj, Owners
from konverge.sim.applications.simulation import Source, WriteRule
from konverge.sim.applications.values import Absent, fill_in

MANAGER = "stand-ins"


class Writes:
    """Applies the rules to pods that run."""

    def __init__(self, rules: Sequence[WriteRule], owners: Owners) -> None:
        self._rules = [(rule, rule.selector) for rule in rules]
        self._owners = owners
        self._readers: dict[tuple[str, str, str], set[Request]] = {}
        """Pods by what their values refer to: kind, namespace and name."""

    def controller(self) -> Controller[Pod]:
        kinds = {source.kind for rule, _ in self._rules for source in rule.sources.values()}
        watches: list[Watches[Any]] = []
        if "Secret" in kinds:
            watches.append(Watches(Secret, requests=lambda secret: self._readers_of("Secret", secret)))
        if "ConfigMap" in kinds:
            watches.append(Watches(ConfigMap, requests=lambda entry: self._readers_of("ConfigMap", entry)))
        return Controller(Pod, self.reconcile, name="stand-in-writes", watches=watches)

    def _readers_of(self, kind: str, obj: Any) -> Iterable[Request]:
        return sorted(self._readers.get((kind, obj.metadata.namespace, obj.metadata.name), ()))

    async def reconcile(self, ctx: Context[Pod]) -> Result | None:
        if ctx.deleting:
            return None
        pod = to_dict(ctx.obj)
        metadata: Obj = {}
        conditions: dict[str, str] = {}
        for rule, selector in self._rules:
            container = _container(ctx.obj, rule, selector)
            if container is None or not _is(rule.when, ctx.obj, container):
                continue
            conditions |= rule.conditions
            references = await self._references(ctx, pod, rule)
            for part, texts in (("annotations", rule.annotations), ("labels", rule.labels_set)):
                metadata.setdefault(part, {}).update(_filled(texts, references))
        await _write_metadata(ctx, pod, metadata)
        await _write_conditions(ctx, pod, conditions)
        return None

    async def _references(self, ctx: Context[Pod], pod: Obj, rule: WriteRule) -> dict[str, Any]:
        references = self._owners.references(pod)
        for name, source in rule.sources.items():
            try:
                value = await self._read(ctx, source, fill_in(source.name, references))
            except (Absent, ValueError):
                continue
            if value is not None:
                references[name] = value
        return references

    async def _read(self, ctx: Context[Pod], source: Source, name: str) -> Any:
        namespace = ctx.obj.metadata.namespace
        self._readers.setdefault((source.kind, namespace, name), set()).add(ctx.request)
        kind: Any = Secret if source.kind == "Secret" else ConfigMap
        try:
            entry = to_dict(await ctx.client.get(kind, name, namespace))
        except NotFound:
            return None
        data: Obj = dict(entry.get("data") or {})
        if source.kind == "Secret":
            data = {key: base64.b64decode(text).decode("utf-8", "replace") for key, text in data.items()}
        value = data.get(source.key) if source.key else data
        return json.loads(value) if source.parse == "json" and isinstance(value, str) else value


def _container(pod: Pod, rule: WriteRule, selector: Any) -> str | None:
    """The first container that a rule is about."""
    whole = to_dict(pod)
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        if selector.matches(pod.metadata, container.name, image_of(whole, container.name)):
            return container.name
    return None


def _is(state: str, pod: Pod, container: str) -> bool:
    if state == "ready":
        return any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions)
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    return any(entry.name == container and entry.state and entry.state.running for entry in statuses)


def _filled(texts: dict[str, str], references: dict[str, Any]) -> Obj:
    """The texts whose references are all there."""
    filled: Obj = {}
    for key, text in texts.items():
        try:
            filled[key] = fill_in(text, references)
        except Absent:
            continue
    return filled


async def _write_metadata(ctx: Context[Pod], pod: Obj, metadata: Obj) -> None:
    present = pod["metadata"]
    changed = {
        part: {key: value for key, value in entries.items() if (present.get(part) or {}).get(key) != value}
        for part, entries in metadata.items()
    }
    changed = {part: entries for part, entries in changed.items() if entries}
    if changed:
        body = {"metadata": {"uid": present["uid"], **changed}}
        await _patched(ctx, MergePatch(body))


async def _write_conditions(ctx: Context[Pod], pod: Obj, conditions: dict[str, str]) -> None:
    present = {entry["type"]: entry["status"] for entry in (pod.get("status") or {}).get("conditions") or ()}
    changed = [{"type": name, "status": value} for name, value in conditions.items() if present.get(name) != value]
    if changed:
        body = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": {"conditions": changed}}
        await _patched(ctx, StrategicPatch(body), subresource="status")


async def _patched(ctx: Context[Pod], body: Patch, subresource: str = "") -> None:
    meta = ctx.obj.metadata
    try:
        await ctx.client.patch(Pod, meta.name, body, meta.namespace, field_manager=MANAGER, subresource=subresource)
    except (NotFound, Conflict):
        return  # it is gone, or another one has its name by now: its own events bring it back
