"""What a process sees of this machine, and as whom it runs.

Where the kernel allows it, a container's process has namespaces of its own: it sees this machine read-only, without the
state of the API server, the folders of other pods, the user's home, and what lies in the temporary folders and in /run;
and no process but its own. As root it becomes an unprivileged user besides, another one for each namespace of the
cluster (in a namespace, whoever may create pods may use all that is in it). The network is this machine's, but for a
container with a `/` of its own where its rule gives it the pod's.
"""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from konverge.sim.podnet.network import NetworkPlace
from konverge.sim.processes import roots
from konverge.sim.processes.roots import Root
from konverge.sim.processes.rules import RunningAsRoot as RunningAsRoot

TRAMPOLINE = (sys.executable, "-I", "-S", str(Path(__file__).with_name("trampoline.py")))
PROBE_TIME = 30.0
_SYSTEM = ("/etc/resolv.conf", "/etc/hosts", "/etc/hostname", "/etc/localtime")
"""Files that may lie in a hidden folder, by a link."""

_DAEMONS = ("/var/snap/lxd/common", "/var/lib/lxd", "/var/lib/incus")
"""Folders outside of /run with the sockets of programs through which who connects is as good as root."""
_UNIX_SOCKETS = Path("/proc/net/unix")
_LISTENS = 0x10000


def not_as_root(why: str, images: Sequence[str]) -> str:
    """What to do about processes that would have all rights on this machine."""
    reason = f"they cannot be isolated: {why}" if why else f"the rule for {images[0]!r} has `isolated: false`"
    return (
        f"process pods would run as root, since {reason}. Start the cluster as another user, or with "
        "--processes-as-root (Cluster(processes_as_root=True)) if all who may create pods may have this machine"
    )


@dataclass(frozen=True, slots=True)
class View:
    """What one container's program sees. All paths are resolved."""

    covers: tuple[tuple[str, str, bool], ...] = ()
    """Folders and files that are hidden: path, options of the empty folder, whether it is writable."""
    shown: tuple[tuple[str, bool], ...] = ()
    """What is there all the same: path, whether it is writable."""
    links: tuple[tuple[str, str], ...] = ()
    user: int | None = None
    root: Root | None = None
    """A `/` of its own, in place of all that."""
    network: NetworkPlace | None = None
    """The pod's network; None: this machine's."""
    target: int | None = None
    """The keeper of another container, whose processes it is to see."""

    def hides(self, path: str | Path) -> bool:
        """Whether this path, or what it leads to, cannot be seen."""
        places = {Path(os.path.abspath(path)), Path(path).resolve()}  # noqa: PTH100 - a link is a place of its own
        named = {Path(link) for link, _ in self.links}
        return any(_beneath(place, self.covers) and not _beneath(place, self.shown) for place in places - named)

    def among(self, keeper: int, other: View) -> View:
        """The same, among the processes of another container and as its user: others have no right to them."""
        if self.root is None or other.root is None:
            return replace(self, target=keeper)
        return replace(self, target=keeper, root=replace(self.root, ids=other.root.ids))

    def options(self) -> dict[str, Any]:
        if self.root is not None:
            return self.root.options()
        return {"covers": self.covers, "shown": self.shown, "links": self.links}

    def place(self) -> dict[str, Any]:
        """What the trampoline has to know of every process that runs there."""
        network = self.network.options() if self.network is not None else {}
        return {"user": self.user, **({"ids": self.root.ids} if self.root is not None else {}), **network}

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What it has to be given for that."""
        return self.network.descriptors if self.network is not None else ()


def _beneath(place: Path, entries: Iterable[tuple[Any, ...]]) -> bool:
    return any(place.is_relative_to(entry[0]) for entry in entries)


@dataclass(slots=True)
class Isolation:
    """The isolation of one cluster's processes."""

    hidden: list[Path] = field(default_factory=list)
    """What no process may see: the state of the API server, kubeconfigs."""
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    salt: str = ""

    def user(self, namespace: str) -> int | None:
        """As whom the processes of a namespace run; None: as we do."""
        if os.getuid() != 0:
            return None
        users = _users()
        digest = hashlib.sha256(f"{self.salt}/{namespace}".encode()).digest()
        return users.start + int.from_bytes(digest[:8], "big") % len(users)

    def view(self, namespace: str, files: Sequence[str], read: Iterable[Path], written: Iterable[Path]) -> View:
        """`files` are those that a rule names, `read` and `written` the container's own. These are resolved and
        checked: resolving them again could give another place, if a pod has put a link there meanwhile.
        """
        user = self.user(namespace)
        shown = {str(path): True for path in written if path.exists()}
        named = [os.path.abspath(os.path.expanduser(name)) for name in files]  # noqa: PTH100, PTH111
        links = [(name, os.path.realpath(name)) for name in (*named, *_SYSTEM) if Path(name).exists()]
        closed = _closed([*shown, *(real for _, real in links)]) if user is not None else []
        seen = [*(str(path) for path in read if path.exists()), *(real for _, real in links)]
        asked_for = [(path,) for path in (*seen, *shown)]
        sockets = [path for path in listening() if not _beneath(Path(path), asked_for)]
        covers = self._covers(user, [*closed, *sockets])
        for path in seen:
            if _beneath(Path(path), covers):
                shown.setdefault(path, False)
        return View(
            tuple(covers),
            tuple(sorted(shown.items(), key=lambda item: item[0].count("/"))),
            tuple((link, real) for link, real in links if link != real),
            user,
        )

    def _covers(self, user: int | None, closed: Iterable[str]) -> list[tuple[str, str, bool]]:
        owner = os.getuid() if user is None else user
        group = os.getgid() if user is None else user
        homes = {self.environ.get("HOME", ""), _home_of(os.getuid())}
        covers = dict.fromkeys(_real(temporary_folders()), ("mode=1777", True))
        covers |= dict.fromkeys(_real(homes), (f"mode=0700,uid={owner},gid={group}", True))
        covers |= dict.fromkeys(
            _real({"/run", "/dev/console", *_DAEMONS, *closed, *map(str, self.hidden)}), ("mode=0755", False)
        )
        outer = [path for path in covers if not any(_inside(path, other) for other in covers)]
        return [(path, *covers[path]) for path in sorted(outer)]


def temporary_folders() -> set[str]:
    """Those that many programs use; a container gets its own."""
    return {"/tmp", "/var/tmp", "/dev/shm", tempfile.gettempdir()}  # noqa: S108


def listening() -> list[str]:
    """The sockets of the file system that we can connect to, which a read-only mount does not prevent."""
    try:
        lines = _UNIX_SOCKETS.read_text(encoding="utf-8", errors="replace").splitlines()[1:]
    except OSError:
        return []
    rows = [line.split(maxsplit=7) for line in lines]
    names = {row[7] for row in rows if len(row) == 8 and int(row[3], 16) & _LISTENS and row[7].startswith("/")}
    there = (name for name in names if Path(name).is_socket() and os.access(name, os.W_OK))
    return _real(there)  # a name that is another file meanwhile, or a container's own, hides nothing


def _home_of(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_dir
    except KeyError:
        return ""


def _closed(paths: Iterable[str]) -> list[str]:
    """The folders above these where only their owner may pass: for another user they are replaced by empty ones."""
    above = (next((up for up in reversed(Path(path).parents) if not up.stat().st_mode & 0o001), None) for path in paths)
    return [str(folder) for folder in above if folder is not None]


def _inside(path: str, other: str) -> bool:
    return path != other and Path(path).is_relative_to(other)


def _real(paths: Iterable[str]) -> list[str]:
    """Those that exist; the root of all is never hidden."""
    resolved = {str(Path(path).resolve()) for path in paths if path and Path(path).exists()}
    return sorted(resolved - {"/"})


def _users() -> range:
    """A range of users that nothing else on this machine has, of those that may be used here."""
    try:
        lines = [list(map(int, line.split())) for line in Path("/proc/self/uid_map").read_text().splitlines()]
    except OSError:
        lines = []
    start, length = max(((line[0], line[2]) for line in lines), key=lambda item: item[1], default=(0, 65536))
    length = min(length, 2**31)
    return range(start + length // 2, start + length // 2 + max(length // 4, 1))


def salt_in(folder: Path) -> str:
    """What makes the users of this cluster others than those of the next, for as long as its folder lives."""
    path = folder / "salt"
    if not path.exists():
        path.write_text(secrets.token_hex(16))
    return path.read_text()


def why_not() -> str:
    """Why processes cannot be isolated on this machine; empty if they can. Tries it."""
    if sys.platform != "linux":
        return f"{sys.platform} has no namespaces"
    isolation = Isolation()
    said, code = _tried(isolation.view("probe", (), (), ()), shutil.which("true") or "/bin/true")
    return said or ("" if code == 0 else f"the trial ended with {code}")


def why_no_roots() -> str:
    """Why processes that can be isolated cannot have a `/` of their own; empty if they can. Tries it."""
    with tempfile.TemporaryDirectory() as folder:
        user = Isolation().user("probe")
        said, _ = _tried(View(user=user, root=roots.trial(Path(folder))), "true")
    return "" if said.startswith("exec:") else said or "the trial ended early"  # in an empty image there is no program


def _tried(view: View, program: str) -> tuple[str, int]:
    """What the trampoline said, and how it ended."""
    theirs, ours = os.pipe()
    options = {"parent": os.getpid(), "terminal": False, "cwd": "/", "status": ours, **view.place()}
    text = json.dumps({**options, "view": view.options()})
    try:
        done = subprocess.run(
            [*TRAMPOLINE, text, program, "true"], pass_fds=(ours,), env={}, stdin=subprocess.DEVNULL,
            capture_output=True, timeout=PROBE_TIME, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error), 1
    finally:
        os.close(ours)
        with os.fdopen(theirs, "rb") as pipe:
            said = pipe.read().decode("utf-8", "replace")
    return said, done.returncode
