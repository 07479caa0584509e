"""What the emptyDirs of a pod may hold. A pod that has more is evicted, as a kubelet does that looks from time to time.

Upstream: emptyDirLimitEviction (pkg/kubelet/eviction/eviction_manager.go).
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from konverge.objects.kinds.core_v1 import Pod
from konverge.objects.quantity import Quantity

PERIOD = 10.0
_BLOCK = 512


def limits(pod: Pod) -> dict[str, Quantity]:
    """The names of volumes that have a limit."""
    return {
        volume.name: volume.empty_dir.size_limit
        for volume in pod.spec.volumes
        if volume.empty_dir is not None and volume.empty_dir.size_limit is not None and int(volume.empty_dir.size_limit)
    }


def used(folder: Path) -> int:
    """Bytes that a folder holds, each file counted once. Links in it are not followed; it may be one itself."""
    if not folder.exists():  # not yet made
        return 0
    total = 0
    seen: set[int] = set()
    for _, folders, files, descriptor in os.fwalk(folder.resolve()):
        for name in (*folders, *files):
            try:
                found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            except OSError:  # it is gone meanwhile
                continue
            if found.st_ino not in seen:
                seen.add(found.st_ino)
                total += found.st_blocks * _BLOCK
    return total


async def excess(pod: Pod, folder: Path) -> str:
    """Waits until a volume in this folder holds too much, and is what the kubelet says of it then."""
    limited = limits(pod)
    while True:
        for name, limit in limited.items():
            if await asyncio.to_thread(used, folder / name) > int(limit):
                return f'Usage of EmptyDir volume "{name}" exceeds the limit "{limit}". '
        await asyncio.sleep(PERIOD)
