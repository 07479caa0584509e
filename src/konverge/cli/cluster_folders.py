"""The clusters of `konverge up` by name: a folder for each, for no other user to read.

    ~/.local/state/konverge/NAME/       (or below $XDG_STATE_HOME)
      cluster.json   what runs: process, URL, kubeconfig, arguments; removed when it ends
      lock           held by the process for as long as it lives: two of one name cannot run
      port           where it listened the last time, which is tried first the next time
      kubeconfig     unless it is put elsewhere
      log            of a cluster in the background

A process that was killed leaves `cluster.json` behind, but neither a lock nor a process that was started at that time:
this is how such remains are noticed.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from konverge.apiserver.private_files import write_private
from konverge.cli import local_processes
from konverge.cli.cluster_names import is_cluster_name
from konverge.cli.exit import CommandFailed, UsageError

_PRIVATE = 0o700


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster that runs, or ran until its process was killed."""

    name: str
    pid: int
    started: str
    """See `local_processes.start_mark`."""
    since: str
    """The time, for people."""
    url: str = ""
    """Empty until it serves."""
    kubeconfig: str = ""
    log: str = ""
    """Empty: it runs in a terminal."""
    data_dir: str = ""
    nodes: int = 0
    operators: tuple[str, ...] = ()
    console: str = ""
    metrics: str = ""
    merged: str = ""
    """The kubeconfig of the user that has its context."""
    arguments: tuple[str, ...] = ()

    @property
    def running(self) -> bool:
        return local_processes.is_running(self.pid, self.started)


class Taken(CommandFailed):
    """A cluster of that name runs; the text says how to reach it."""


class ClusterFolder:
    """The folder of one named cluster."""

    def __init__(self, name: str, root: Path | None = None) -> None:
        self.name = name
        self.path = (root or state_root()) / name
        self.kubeconfig = self.path / "kubeconfig"
        self.log = self.path / "log"
        self._record = self.path / "cluster.json"
        self._port = self.path / "port"

    def make(self) -> None:
        """Raises OSError where nothing can be written."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.path.chmod(_PRIVATE)

    def record(self) -> Record | None:
        """What runs or was killed; None if it ended well, or if the file is not one of ours."""
        try:
            return msgspec.json.decode(self._record.read_bytes(), type=Record)
        except (OSError, msgspec.MsgspecError):
            return None

    def write(self, record: Record) -> None:
        write_private(self._record, msgspec.json.format(msgspec.json.encode(record), indent=1))

    @property
    def port(self) -> int:
        """Where it listened the last time; 0 if it never did."""
        with suppress(OSError, ValueError):
            return int(self._port.read_text())
        return 0

    def remember_port(self, port: int) -> None:
        write_private(self._port, str(port).encode())

    def refuse_if_running(self) -> None:
        """Raises Taken."""
        record = self.record()
        if record is not None and record.running:
            raise Taken(already_runs(record))

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Inside the block, no other process has this name. Raises Taken, or OSError where nothing can be written."""
        self.make()
        # A lock of lockf is not inherited by processes that are forked: it ends with this one, however that ends.
        with (self.path / "lock").open("ab") as lock:
            try:
                fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                record = self.record()
                raise Taken(
                    already_runs(record) if record is not None else f"a cluster {self.name!r} is starting: wait for it"
                ) from None
            self.refuse_if_running()
            yield

    def clear(self) -> None:
        """Remove what said that it runs. The port and the log stay."""
        for file in (self._record, self.kubeconfig, self.path / "console.token"):
            file.unlink(missing_ok=True)


def already_runs(record: Record) -> str:
    """What to do about a cluster that runs."""
    reach = f"export KUBECONFIG={record.kubeconfig}" if record.kubeconfig else "konverge status"
    return (
        f"the cluster {record.name!r} runs already, {record.url or 'starting'} (process {record.pid}): use it by "
        f"`{reach}`, end it by `konverge down {record.name}`, or start another by `konverge up --name …`"
    )


def state_root() -> Path:
    """Where the folders of clusters are."""
    base = os.environ.get("XDG_STATE_HOME", "")
    # A relative path is to be ignored: XDG Base Directory Specification.
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".local/state") / "konverge"


def known_clusters(root: Path | None = None) -> list[ClusterFolder]:
    """Every cluster that has a folder, by name."""
    with suppress(OSError):
        return [
            ClusterFolder(path.name, root)
            for path in sorted((root or state_root()).iterdir())
            if path.is_dir() and is_cluster_name(path.name)
        ]
    return []


def running_cluster(name: str) -> Record:
    """The record of a cluster that serves. Raises UsageError with the names of those that do."""
    record = ClusterFolder(name).record()
    if record is not None and record.running and record.kubeconfig:
        return record
    records = [folder.record() for folder in known_clusters()]
    names = ", ".join(record.name for record in records if record is not None and record.running)
    raise UsageError(f"no cluster {name!r} runs; " + (f"these do: {names}" if names else "start one by `konverge up`"))
