"""Manifests in a cluster: applied in the order that they need, applied again when they change, removed with their file.

What was applied is in an inventory in the cluster, so that a restart knows it too: each set of sources has one of its
own there, and what is in several belongs to none of them. An object is marked with an annotation when it is created
here: only an object that is in the inventory and has the mark is ever removed. One that was there before, such as the
namespace `default`, is applied to and never removed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from konverge.cli.exit import CommandFailed
from konverge.cli.install_objects import established
from konverge.cli.manifest_files import STDIN, Manifest
from konverge.cli.object_changes import short_name
from konverge.client import Client, ClientError, MergePatch, NotFound
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.objects.resource import Resource

MANAGER = "konverge-up"
MARK = "konverge.dev/applied-by"
INVENTORY = ("kube-system", "konverge-up-manifests")
DEFAULT_NAMESPACE = "default"

# Upstream: InstallOrder of Helm (releaseutil/kind_sorter.go), with definitions and namespaces first. Kinds that are not
# in it come last: they are instances of the definitions.
_FIRST = (
    "CustomResourceDefinition",
    "Namespace",
    "PriorityClass",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
)
_RANK = {kind: rank for rank, kind in enumerate(_FIRST)}


class Identity(NamedTuple):
    """Which object it is, in whatever version."""

    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return short_name(self.kind, self.namespace, self.name)

    @property
    def group_kind(self) -> tuple[str, str, str, str]:
        return (self.api_version.rpartition("/")[0], *self[1:])


class Outcome(msgspec.Struct):
    """What applying did: names of objects, and errors with where they come from."""

    created: list[Identity] = msgspec.field(default_factory=list)
    changed: list[Identity] = msgspec.field(default_factory=list)
    removed: list[Identity] = msgspec.field(default_factory=list)
    errors: list[str] = msgspec.field(default_factory=list)
    resources: list[Resource] = msgspec.field(default_factory=list)

    def summary(self) -> str:
        """What was done, in a line."""
        parts = (("created", self.created), ("changed", self.changed), ("removed", self.removed))
        done = [f"{what} {', '.join(map(str, identities))}" for what, identities in parts if identities]
        return f"applied: {'; '.join(done) or 'no change'}"


def install_order(manifests: Iterable[Manifest]) -> list[Manifest]:
    """Definitions and namespaces first, custom resources last; else in the order of the files."""
    return sorted(manifests, key=lambda manifest: _RANK.get(manifest.obj["kind"], len(_RANK)))


class Applied:
    """The manifests of some sources (what `-f` was given) in one cluster."""

    def __init__(self, client: Client, sources: Iterable[str]) -> None:
        self._client = client
        self._key = inventory_key(sources)

    async def apply(self, manifests: Iterable[Manifest], *, remove: bool) -> Outcome:
        """Make the cluster have these objects; with `remove`, none of those that were applied from these sources before
        and are no longer among them.

        An object that is refused does not keep others from being applied; but then nothing is removed: an object may
        only have moved to another file. Nor is anything when there is no object at all: an editor may have just
        emptied the file to write it.
        """
        outcome = Outcome()
        inventories = await self._inventories()
        before = inventories.pop(self._key, [])
        elsewhere = {identity.group_kind for identities in inventories.values() for identity in identities}
        ordered = install_order(manifests)
        definitions = [manifest for manifest in ordered if manifest.obj["kind"] == "CustomResourceDefinition"]
        kept: dict[tuple[str, ...], Identity] = {}
        for manifest in ordered:
            await self._apply(manifest, kept, outcome)
            if definitions and manifest is definitions[-1]:
                await self._await(definitions, outcome)
        gone = [identity for identity in before if identity.group_kind not in kept]
        await self._remember([*gone, *kept.values()])  # before anything is removed: a crash must not forget it
        if remove and kept and not outcome.errors:
            for identity in reversed(gone):
                if identity.group_kind not in elsewhere:
                    await self._remove(identity, outcome)
            if not outcome.errors:
                await self._remember(kept.values())
        return outcome

    async def _apply(self, manifest: Manifest, kept: dict[tuple[str, ...], Identity], outcome: Outcome) -> None:
        obj = manifest.obj
        try:
            resource = await self._client.mapper.kind(obj["apiVersion"], obj["kind"])
            namespace = (obj["metadata"].get("namespace") or DEFAULT_NAMESPACE) if resource.namespaced else ""
            identity = Identity(obj["apiVersion"], obj["kind"], namespace, obj["metadata"]["name"])
            kept[identity.group_kind] = identity
            outcome.resources.append(resource)
            observed = await self._observed(resource, identity)
            desired = _placed(obj, namespace, marked=observed is None or _is_marked(observed))
            applied = await self._client.apply(desired, resource=resource, field_manager=MANAGER, force=True)
        except (ClientError, ValueError) as error:
            outcome.errors.append(f"{manifest.origin}: {obj['kind']} {obj['metadata']['name']}: {error}")
            return
        if observed is None:
            outcome.created.append(identity)
        elif observed["metadata"]["resourceVersion"] != applied["metadata"]["resourceVersion"]:
            outcome.changed.append(identity)

    async def _await(self, definitions: list[Manifest], outcome: Outcome) -> None:
        for manifest in definitions:
            name = manifest.obj["metadata"]["name"]
            if any(name in error for error in outcome.errors):
                continue
            try:
                await established(self._client, name)
            except CommandFailed as error:
                outcome.errors.append(f"{manifest.origin}: {error}")

    async def _observed(self, resource: Resource, identity: Identity) -> dict[str, Any] | None:
        try:
            return await self._client.get(resource, identity.name, identity.namespace)
        except NotFound:
            return None

    async def _remove(self, identity: Identity, outcome: Outcome) -> None:
        try:
            resource = await self._client.mapper.kind(identity.api_version, identity.kind)
            observed = await self._observed(resource, identity)
            if observed is None or not _is_marked(observed):
                return
            uid = observed["metadata"]["uid"]
            await self._client.delete(resource, identity.name, identity.namespace, uid=uid, propagation="Background")
        except NotFound:  # it went by itself, or with its definition
            return
        except ClientError as error:
            outcome.errors.append(f"{identity} could not be removed: {error}")
        else:
            outcome.removed.append(identity)

    async def _inventories(self) -> dict[str, list[Identity]]:
        try:
            written = (await self._client.get(ConfigMap, INVENTORY[1], INVENTORY[0])).data or {}
        except NotFound:
            return {}
        return {key: _identities(text) for key, text in written.items()}

    async def _remember(self, identities: Iterable[Identity]) -> None:
        """Write the inventory of these sources; those of others stay."""
        data = {self._key: json.dumps([list(identity) for identity in identities])}
        try:
            await self._client.patch(
                ConfigMap, INVENTORY[1], MergePatch({"data": data}), INVENTORY[0], field_manager=MANAGER
            )
        except NotFound:
            metadata = {"namespace": INVENTORY[0], "name": INVENTORY[1]}
            inventory = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
            await self._client.create(inventory, field_manager=MANAGER)


def inventory_key(sources: Iterable[str]) -> str:
    """Which inventory is that of these sources, in whatever order: a key of a ConfigMap cannot be a path."""
    places = sorted({source if source == STDIN else str(Path(source).absolute()) for source in sources})
    return f"objects-{hashlib.sha256(json.dumps(places).encode()).hexdigest()[:16]}"


def _identities(text: str) -> list[Identity]:
    try:
        return msgspec.json.decode(text, type=list[Identity])
    except msgspec.MsgspecError:
        return []


def _is_marked(obj: dict[str, Any]) -> bool:
    return MARK in (obj["metadata"].get("annotations") or {})


def _placed(obj: dict[str, Any], namespace: str, *, marked: bool) -> dict[str, Any]:
    metadata = dict(obj["metadata"])
    if namespace:
        metadata["namespace"] = namespace
    if marked:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), MARK: MANAGER}
    return {**obj, "metadata": metadata}
