"""Clusters from kubeconfig files in a folder: one file, one cluster, named after the file."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

from konverge.client import Client, load_config
from konverge.client.errors import ConfigError
from konverge.runtime.clusters.confined import MAX_BYTES
from konverge.runtime.clusters.providers import Connection, Known, Unusable, check_name

SUFFIXES = (".yaml", ".yml", ".kubeconfig", ".conf", ".json")


class KubeconfigFolder:
    """The kubeconfig files of a folder, with their current contexts; looked at every few seconds.

    Manager(clusters=KubeconfigFolder("/etc/clusters"))

    `east.yaml` is the cluster `east`. A file that is added, changed or removed takes effect while it runs; hidden
    files are left out, so a mounted Secret or ConfigMap is a folder as well. Files are trusted: they may name programs
    (exec plugins) and other files.
    """

    def __init__(self, path: str | Path, *, period: float = 5.0) -> None:
        self.path = Path(path)
        self.period = period
        self._seen: dict[Path, tuple[tuple[int, ...], Connection | Unusable]] = {}
        """File -> what it was like when it was last read, and what was in it."""

    async def clusters(self, home: Client) -> AsyncIterator[Known]:
        last: Known | None = None
        while True:
            known = self._look()
            if known != last:
                last = known
                yield known
            await asyncio.sleep(self.period)

    def _look(self) -> Known:
        """Raises OSError when the folder cannot be read: it is no reason to take its clusters for removed."""
        known: dict[str, Connection | Unusable] = {}
        seen: dict[Path, tuple[tuple[int, ...], Connection | Unusable]] = {}
        for file in sorted(self.path.iterdir()):
            if file.name.startswith(".") or file.is_dir():
                continue
            name = file.stem if file.suffix in SUFFIXES else file.name
            if name in known:
                known[name] = Unusable(f"several files of {self.path} are called {name}: rename all but one")
                continue
            try:
                stat = file.stat()
                mark = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
                before = self._seen.get(file)
                entry = before[1] if before is not None and before[0] == mark else _read(file, name)
                seen[file] = mark, entry
            except OSError as error:
                entry = Unusable(f"{file} cannot be read: {error.strerror}")
            known[name] = entry
        self._seen = seen
        return known


def _read(file: Path, name: str) -> Connection | Unusable:
    content = file.read_bytes()
    try:
        check_name(name)
        if len(content) > MAX_BYTES:
            raise ConfigError(f"{file} is larger than {MAX_BYTES} bytes: not a kubeconfig")
        config = load_config(kubeconfig=file)
    except (ConfigError, ValueError) as error:
        return Unusable(str(error))
    return Connection(lambda: Client.connect(config), hashlib.sha256(content).hexdigest())
