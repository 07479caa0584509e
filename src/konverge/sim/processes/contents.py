"""What the files of a volume are, for volumes that are made of objects: ConfigMap, Secret, downward API, projected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from konverge.objects.kinds.core_v1 import (
    DownwardAPIVolumeFile,
    KeyToPath,
    ServiceAccountTokenProjection,
    Volume,
    VolumeProjection,
)
from konverge.sim.processes.downward import Self
from konverge.sim.processes.environment import Objects

_MODE = 0o644


class MountError(Exception):
    """A volume that cannot be mounted; the message is the kubelet's where it has one."""


@dataclass(frozen=True, slots=True)
class File:
    data: bytes
    mode: int = _MODE


Files = dict[str, File]
"""By their paths in the volume."""


class Source(Objects, Protocol):
    """Also reads binary keys, and issues tokens."""

    async def config_map_data(self, name: str) -> Mapping[str, bytes] | None: ...

    async def token(self, audience: str, seconds: int) -> bytes:
        """For the pod's service account, bound to the pod."""


def is_made_of_objects(volume: Volume) -> bool:
    return any((volume.config_map, volume.secret, volume.downward_api, volume.projected))


async def files(volume: Volume, itself: Self, source: Source) -> Files:
    """The files of such a volume. Raises MountError."""
    if volume.config_map is not None:
        config_map = volume.config_map
        data = await source.config_map_data(config_map.name or "")
        return _picked(
            data, "configmap", config_map.name or "", config_map.items, config_map.optional, config_map.default_mode
        )
    if volume.secret is not None:
        secret = volume.secret
        name = secret.secret_name or ""
        keys = await source.secret(name)
        return _picked(keys, "secret", name, secret.items, secret.optional, secret.default_mode)
    if volume.downward_api is not None:
        return _downward(volume.downward_api.items, itself, volume.downward_api.default_mode)
    contents: Files = {}
    if volume.projected is not None:
        for part in volume.projected.sources:
            contents |= await _projected(part, itself, source, volume.projected.default_mode)
    return contents


async def _projected(part: VolumeProjection, itself: Self, source: Source, mode: int | None) -> Files:
    if part.config_map is not None:
        config_map = part.config_map
        data = await source.config_map_data(config_map.name or "")
        return _picked(data, "configmap", config_map.name or "", config_map.items, config_map.optional, mode)
    if part.secret is not None:
        secret = part.secret
        keys = await source.secret(secret.name or "")
        return _picked(keys, "secret", secret.name or "", secret.items, secret.optional, mode)
    if part.downward_api is not None:
        return _downward(part.downward_api.items, itself, mode)
    if part.service_account_token is not None:
        return await _token(part.service_account_token, source)
    raise MountError("process pods offer configMap, secret, downwardAPI and serviceAccountToken in projected volumes")


async def _token(part: ServiceAccountTokenProjection, source: Source) -> Files:
    token = await source.token(part.audience or "", part.expiration_seconds or 3600)
    return {part.path: File(token, 0o600)}


def _picked(
    data: Mapping[str, bytes] | None,
    kind: str,
    name: str,
    items: Sequence[KeyToPath],
    optional: bool | None,
    mode: int | None,
) -> Files:
    if data is None:
        if optional:
            return {}
        raise MountError(f'{kind} "{name}" not found')
    usual = _MODE if mode is None else mode
    if not items:
        return {key: File(value, usual) for key, value in data.items()}
    contents: Files = {}
    for item in items:
        if item.key in data:
            contents[item.path] = File(data[item.key], usual if item.mode is None else item.mode)
        elif not optional:
            raise MountError(f"references non-existent {kind} key: {item.key}")
    return contents


def _downward(items: Sequence[DownwardAPIVolumeFile], itself: Self, mode: int | None) -> Files:
    contents: Files = {}
    for item in items:
        text = ""
        if item.field_ref is not None:
            text = itself.field(item.field_ref.field_path)
        elif item.resource_field_ref is not None:
            text = itself.amount(item.resource_field_ref, item.resource_field_ref.container_name or "")
        usual = _MODE if mode is None else mode
        contents[item.path] = File(text.encode(), usual if item.mode is None else item.mode)
    return contents
