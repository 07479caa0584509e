"""Ends what is left when the cluster itself was killed: a process of its own, at the other end of a pipe.

Run as a script, on the standard library alone. Each line that it reads is `+SESSION` or `-SESSION`; when the pipe
ends, every session that is still named is killed, and the folders that it was given (those that were to live as
long as the cluster) are removed. A container is a session of its own, so whatever it started goes with it, also what
has left its process group.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress


def members(session: int) -> list[int]:
    """The processes of a session and all below them, where the system lists them (Linux).

    The program of an isolated container may be in a session of its own, but is always below its keeper.
    """
    parents: dict[int, int] = {}
    wanted = {session}
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - a script for which each import counts
    except OSError:
        return []
    for name in names:
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if len(fields) > 3 and fields[0] != b"Z":
            parents[int(name)] = int(fields[1])
            if int(fields[3]) == session:
                wanted.add(int(name))
    before = 0
    while len(wanted) != before:
        before = len(wanted)
        wanted |= {pid for pid, parent in parents.items() if parent in wanted}
    return [pid for pid in wanted if pid in parents]


def resident(session: int) -> int:
    """Bytes of memory that the processes of a session hold."""
    pages = 0
    for pid in members(session):
        try:
            with open(f"/proc/{pid}/statm", "rb") as file:  # noqa: PTH123
                pages += int(file.read().split()[1])
        except (OSError, IndexError):
            continue
    return pages * os.sysconf("SC_PAGE_SIZE")


def kill_session(session: int) -> None:
    """Kill a session's leader, its group, and all others of it."""
    for _ in range(3):  # what is killed may have just started another
        with suppress(OSError):
            os.killpg(session, signal.SIGKILL)
        left = members(session)
        for pid in left:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if not left:
            return


def remove_tree(path: str) -> None:
    """A folder with all in it, also what a process has closed to its own user; links are not followed."""
    import shutil

    for _ in range(2):
        shutil.rmtree(path, ignore_errors=True)
        for folder, names, _ in os.walk(path):
            for name in names:
                place = os.path.join(folder, name)  # noqa: PTH118
                if not os.path.islink(place):  # noqa: PTH114
                    with suppress(OSError):
                        os.chmod(place, 0o700)  # noqa: PTH101


def is_ours(folder: str) -> bool:
    """Whether a folder may be removed: one that was made for a cluster, by its name. Whatever else is named here was
    named by mistake, and a mistake must not cost a machine its files."""
    return os.path.isabs(folder) and os.path.basename(folder).startswith("konverge-")  # noqa: PTH117, PTH119


def watch() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sessions: set[int] = set()
    for line in sys.stdin.buffer:
        (sessions.add if line.startswith(b"+") else sessions.discard)(int(line[1:]))
    for session in sessions:
        kill_session(session)
    for folder in sys.argv[1:]:
        if is_ours(folder):
            remove_tree(folder)


if __name__ == "__main__":
    watch()
