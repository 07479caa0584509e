"""What a simulated server has on its disk, and which disk that is: the volume where its container keeps its data.

A claim's data lives as long as its PersistentVolume, an emptyDir's as long as its pod, and what is in no volume as long
as the container's run. So a test sees what real servers would lose.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

import msgspec

from konverge.objects.kinds.core_v1 import Container, Pod, Volume, VolumeMount
from konverge.sim.databases import Kept

HOME = PurePosixPath("/home/nacos/data")
"""Where the official image keeps its embedded database and the logs of its raft groups."""
ConfigKey = tuple[str, str, str]
"""Namespace, group and dataId of a configuration."""
Place = tuple[str, ...]
Read = Callable[[str, str, str], dict[str, Any] | None]


class Data(msgspec.Struct):
    """The content of an embedded database."""

    users: dict[str, str] = msgspec.field(default_factory=dict)
    """Plain passwords, which never leave the simulation."""
    configs: dict[ConfigKey, str] = msgspec.field(default_factory=dict)
    kept: Kept = msgspec.field(default_factory=Kept)
    written: tuple[int, int] = (0, 0)
    """Term and number of the last write, as in raft's log. No member votes for one that has an older one."""

    def copy(self) -> Data:
        return Data(dict(self.users), dict(self.configs), self.kept.copy(), self.written)


class Disk(msgspec.Struct, eq=False):
    """Empty until a server has started on it."""

    terms: dict[str, int] = msgspec.field(default_factory=dict)
    """By raft group: the last term that it has voted in."""
    peers: set[str] | None = None
    """The addresses of the peers of its raft groups."""
    changes: int = 0
    """How many changes of the peers it has seen. No member votes for one with fewer."""
    data: Data | None = None


class Disks:
    """The disks of all servers."""

    def __init__(self, read: Read) -> None:
        """`read` gets an object by plural, namespace and name."""
        self._read = read
        self._disks: dict[Place, Disk] = {}

    def of(self, pod: Pod, container: Container, run: int) -> Disk:
        """The disk that this run of a container writes to."""
        return self._disks.setdefault(self._place(pod, container, run), Disk())

    def forget(self, uid: str) -> None:
        """The pod is gone, with everything that was its own."""
        for place in [place for place in self._disks if place[:2] == ("pod", uid)]:
            del self._disks[place]

    def _place(self, pod: Pod, container: Container, run: int) -> Place:
        mount = max(
            (mount for mount in container.volume_mounts if HOME.is_relative_to(mount.mount_path)),
            key=lambda mount: len(PurePosixPath(mount.mount_path).parts),
            default=None,
        )
        volume = next((volume for volume in pod.spec.volumes if mount is not None and volume.name == mount.name), None)
        if mount is None or volume is None:
            return "pod", pod.metadata.uid, container.name, str(run)
        return (*self.volume(pod, volume), *_below(mount, pod))

    def volume(self, pod: Pod, volume: Volume) -> Place:
        """Where the data of a pod's volume is."""
        namespace = pod.metadata.namespace
        if volume.persistent_volume_claim is not None:
            return self._claimed(namespace, volume.persistent_volume_claim.claim_name)
        if volume.ephemeral is not None:
            return self._claimed(namespace, f"{pod.metadata.name}-{volume.name}")
        if volume.host_path is not None:
            return "node", pod.spec.node_name or "", volume.host_path.path
        return "pod", pod.metadata.uid, volume.name

    def _claimed(self, namespace: str, name: str) -> Place:
        claim = self._read("persistentvolumeclaims", namespace, name) or {}
        bound = str((claim.get("spec") or {}).get("volumeName") or "")
        volume = (self._read("persistentvolumes", "", bound) if bound else None) or claim
        return "volume", str((volume.get("metadata") or {}).get("uid", ""))


def _below(mount: VolumeMount, pod: Pod) -> Place:
    """A folder of the volume, for each pod its own where its name is part of it."""
    expression = (mount.sub_path_expr or "").replace("$(POD_NAME)", pod.metadata.name)
    return tuple(filter(None, (mount.sub_path or expression,)))
