"""The clusters of `konverge up` by name: a folder for each, for no other user to read.

    ~/.local/state/konverge/NAME/       (or below $XDG_STATE_HOME)
      cluster.json   what runs: process, URL, kubeconfig, arguments; removed when it ends
      lock           held by the process for as long as it lives: two of one name cannot run
      port           where it listened the last time, which is tried first the next time
      kubeconfig     unless it is put elsewhere
      log            of a cluster in the background
      operators/     where each operator is asked what it did, with a token for it

A process that was killed leaves `cluster.json` behind, but neither a lock nor a process that was started at that time:
this is how such remains are noticed. The lock counts wherever the folder is shared; the number of the process only in
one container, so that its absence proves nothing.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import msgspec

from konverge import clock
from konverge.apiserver.private_files import write_private
from konverge.cli import local_processes
from konverge.cli.cluster_names import is_cluster_name
from konverge.cli.exit import CommandFailed, UsageError

_PRIVATE = 0o700
_LOOKED_AT = 0.5
"""For how long a lock is waited for: whoever asks whether it is held has it for a moment."""
_POLL = 0.05


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
    def process_seen(self) -> bool:
        """Whether its process can be seen from here; of one in another container this is not so."""
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
        if self.running:
            raise self._taken()

    @property
    def running(self) -> bool:
        """Whether a process has this name. The process itself must not ask: its lock would end with the question."""
        record = self.record()
        if record is not None and record.process_seen:
            return True
        try:
            with (self.path / "lock").open("rb") as lock:
                fcntl.lockf(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:  # no process ever had it, or there are no locks
            return False
        return False

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Inside the block, no other process has this name. Raises Taken, or OSError where nothing can be written."""
        self.make()
        with ExitStack() as stack:
            try:
                stack.enter_context(self._locked())
            except BlockingIOError:
                raise self._taken() from None
            record = self.record()
            if record is not None and record.process_seen:  # there are file systems without locks
                raise self._taken()
            yield

    @contextmanager
    def unclaimed(self) -> Iterator[bool]:
        """Whether no process has this name; inside the block none can take it. Raises OSError."""
        with ExitStack() as stack:
            try:
                stack.enter_context(self._locked())
            except BlockingIOError:
                yield False
                return
            record = self.record()
            yield record is None or not record.process_seen

    @contextmanager
    def _locked(self) -> Iterator[None]:
        # A lock of lockf is not inherited by processes that are forked: it ends with this one, however that ends.
        with (self.path / "lock").open("ab") as lock:
            deadline = clock.monotonic() + _LOOKED_AT
            while True:
                try:
                    fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if clock.monotonic() > deadline:
                        raise
                    time.sleep(_POLL)
            yield

    def _taken(self) -> Taken:
        record = self.record()
        return Taken(already_runs(record) if record is not None else is_starting(self.name))

    def clear(self) -> None:
        """Remove what said that it runs. The port and the log stay."""
        stories = (self.path / "operators").glob("*.json")
        for file in (self._record, self.kubeconfig, self.path / "console.token", *stories):
            file.unlink(missing_ok=True)


def is_starting(name: str) -> str:
    return f"a cluster {name!r} is starting: wait for it"


def already_runs(record: Record) -> str:
    """What to do about a cluster that runs."""
    reach = f"export KUBECONFIG={shlex.quote(record.kubeconfig)}" if record.kubeconfig else "konverge status"
    return (
        f"the cluster {record.name!r} runs already, {record.url or 'starting'} (process {record.pid}): use it by "
        f"`{reach}`, end it by `konverge down {record.name}`, or start another by `konverge up --name …`"
    )


def state_root() -> Path:
    """Where the folders of clusters are. Raises OSError where the user has no home."""
    base = os.environ.get("XDG_STATE_HOME", "")
    if Path(base).is_absolute():  # a relative path is to be ignored: XDG Base Directory Specification
        return Path(base) / "konverge"
    try:
        return Path.home() / ".local/state/konverge"
    except RuntimeError as error:
        raise FileNotFoundError("this user has no home: set HOME, or XDG_STATE_HOME, to a folder") from error


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
    folder = ClusterFolder(name)
    record = folder.record()
    if record is not None and record.kubeconfig and folder.running:
        return record
    names = ", ".join(known.name for known in known_clusters() if known.record() is not None and known.running)
    raise UsageError(f"no cluster {name!r} runs; " + (f"these do: {names}" if names else "start one by `konverge up`"))
