"""Each worker in namespaces of its own: its ports clash with no other, and nothing it starts reaches the network.

Operators listen on fixed ports, pods of parallel clusters have the same addresses, names are to be resolved by our own
server, and an operator under check must not reach whatever this machine can. So a worker enters, before all else:

- a network namespace with loopback alone, where every port is free and all users may have port 53;
- a mount namespace with an empty /run (so the files of a pod's account can be mounted) and its own resolv.conf;
- a process namespace: when the worker ends, however that happens, all that it started has ended;
- a user namespace, where we are not root.

Where the kernel or a container's rules forbid that, `why_not` says so, and runs come one after the other.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

RESOLVER = "127.0.0.53"
"""Where the resolver of a worker listens (see `konverge.sim.applications.names`)."""
RESOLV_CONF = Path("/etc/resolv.conf")
OWN = Path("/run/konverge")
OWN_RESOLV_CONF = OWN / "resolv.conf"
"""What is seen as /etc/resolv.conf in a worker; it may be written for each run."""
HOSTS = "127.0.0.1 localhost\n::1 localhost\n"
MARK = "KONVERGE_CHECK_ISOLATED"
"""Set in the environment of a worker that is isolated."""
PROBE_TIME = 30.0

_PR_SET_PDEATHSIG = 1
_NEWNS, _NEWUSER, _NEWPID, _NEWNET = 0x00020000, 0x10000000, 0x20000000, 0x40000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1


class CannotIsolate(OSError):
    """This machine does not allow it."""


def is_isolated() -> bool:
    """Whether this process is a worker in namespaces of its own."""
    return MARK in os.environ


def enter() -> None:
    """Go into new namespaces; returns in a child process, which is the first of its process namespace.

    The process that called waits for it and ends with its code. Raises CannotIsolate. No thread may have been started.
    """
    if sys.platform != "linux":
        raise CannotIsolate(f"{sys.platform} has no namespaces")
    libc = ctypes.CDLL(None, use_errno=True)
    _unshare(libc)
    child = os.fork()
    if child:
        _wait(child)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        _mounts(libc)
        _network()
    except OSError as error:
        raise CannotIsolate(str(error)) from error
    os.environ[MARK] = "yes"


def _unshare(libc: ctypes.CDLL) -> None:
    wanted = _NEWNS | _NEWPID | _NEWNET
    if os.getuid() == 0 and libc.unshare(wanted) == 0:
        return
    user, group = os.getuid(), os.getgid()
    if libc.unshare(wanted | _NEWUSER) != 0:
        raise CannotIsolate(f"unshare: {os.strerror(ctypes.get_errno())}")
    try:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            Path(f"/proc/self/{name}").write_text(text)
    except OSError as error:
        raise CannotIsolate(f"user namespaces are restricted: {error}") from error


def _wait(child: int) -> None:
    """Until the first process inside has ended; never returns. When we are killed, it is killed as well."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: _pass_on(child, received))
    while True:
        with suppress(InterruptedError):
            _, status = os.waitpid(child, 0)
            break
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def _pass_on(child: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(child, number)


# ------------------------------------------------------------------ inside


def _mounts(libc: ctypes.CDLL) -> None:
    resolved = RESOLV_CONF.resolve() if RESOLV_CONF.exists() else None
    _mount(libc, "", "/", "", _MS_REC | _MS_PRIVATE)
    _mount(libc, "proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    run = Path("/run").resolve()
    _mount(libc, "tmpfs", str(run), "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=0755")
    OWN.mkdir()
    OWN_RESOLV_CONF.write_text(f"nameserver {RESOLVER}\n")
    if resolved is not None:
        if resolved.is_relative_to(run):  # it was hidden just now
            resolved.parent.mkdir(parents=True, exist_ok=True)
            resolved.touch()
        _mount(libc, str(OWN_RESOLV_CONF), str(resolved), "", _MS_BIND)
    hosts = Path("/etc/hosts")
    if hosts.exists():
        (OWN / "hosts").write_text(f"{HOSTS}127.0.0.1 {socket.gethostname()}\n")
        _mount(libc, str(OWN / "hosts"), str(hosts.resolve()), "", _MS_BIND)


def _mount(libc: ctypes.CDLL, source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    texts = [text.encode() for text in (source, target, kind)]
    if libc.mount(*texts, ctypes.c_ulong(flags), options.encode()) != 0:
        raise OSError(f"mount {target}: {os.strerror(ctypes.get_errno())}")


def _network() -> None:
    """Loopback up, and all of its ports for everyone."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = struct.pack("16sH14s", b"lo", 0, b"")
        flags = struct.unpack("16sH14s", fcntl.ioctl(sock, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(sock, _SIOCSIFFLAGS, struct.pack("16sH14s", b"lo", flags | _IFF_UP, b""))
    with suppress(OSError):
        Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").write_text("0")


# ------------------------------------------------------------------ whether it can be had


def why_not() -> str:
    """Why workers cannot be isolated on this machine; empty if they can. Tries it, in a process of its own."""
    command = [sys.executable, "-m", "konverge.check.isolation"]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PROBE_TIME, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if done.returncode == 0 else done.stdout.strip() or f"the trial ended with {done.returncode}"


def _trial() -> int:
    try:
        enter()
    except CannotIsolate as error:
        sys.stdout.write(str(error))
        return 1
    with socket.socket() as sock:
        sock.bind((RESOLVER, 53))
    return 0


if __name__ == "__main__":
    sys.exit(_trial())
