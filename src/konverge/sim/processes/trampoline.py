"""The first moments of a process, before its program: run as a script, on the standard library alone.

    trampoline.py OPTIONS PROGRAM ARGUMENT0 …

It asks the system to be killed when its parent dies (which the program inherits), gives the signals their usual
meaning back, takes the terminal, and becomes the program. A fresh interpreter can do that safely; a fork of a server
with threads cannot. The program's variables come with a prefix: what a pod says must not reach the loader of this
interpreter, which may run as root.

OPTIONS is JSON: `parent` (a pid), `terminal`, `cwd`, and for a program that is isolated

- `view`: what it sees of this machine, or the image that is its `/`. The trampoline stays as its keeper, outside of the
  new namespaces of processes: keeper, first process (which collects orphans, and with which all others end), program.
  Signals are passed on, the exit code comes back.
- with it, `target`: the pid of another container's keeper, whose processes it is to be among.
- or `join`: the pid of a keeper, to run beside its program.
- `ids`: for a program with a `/` of its own, the user and the group that it takes itself for. In its user namespace
  these are the only ones there are, and they are `user` outside (or we).
- `user`: who it becomes (as root); without one it stays who it is, with a user namespace of its own.
- `network`: a descriptor of the network namespace that it enters, and `network_user` of the user namespace in which
  that can be done, if we are not root.
- `status`: a descriptor that is closed when the program is about to run; what went wrong is written there.
"""

# A script for which each import counts; all of them are here, since the modules may be hidden from an isolated program.
# ruff: noqa: PTH102, PTH103, PTH106, PTH108, PTH110, PTH112, PTH113, PTH114, PTH120, PTH123, PTH211

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import signal
import stat
import sys
import termios
from contextlib import suppress
from typing import Any

PREFIX = "konverge:"
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38
_NEWNS, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID = 0x00020000, 0x04000000, 0x08000000, 0x10000000, 0x20000000
_NEWNET = 0x40000000
_NAMESPACES = {"user": _NEWUSER, "mnt": _NEWNS, "uts": _NEWUTS, "ipc": _NEWIPC, "pid_for_children": _NEWPID}
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_HERE, _RECURSIVE, _EMPTY_PATH, _CLONE, _CLOEXEC = -100, 0x8000, 0x1000, 1, os.O_CLOEXEC
_READ_ONLY, _NO_SUID, _NO_DEV = 1, 2, 4
_MNT_DETACH = 2
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_BEFORE = "/.konverge-before"
"""Where the file system of this machine is until the program's own is complete."""
_NOT_PASSED_ON = {signal.SIGCHLD, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGWINCH}

Tree = tuple[int, str, int]
"""A descriptor of what is to be mounted, where, and with which attributes."""

libc = ctypes.CDLL(None, use_errno=True)


def _call(what: str, result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    texts = [text.encode() for text in (source, target, kind)]
    _call(f"mount {target}", libc.mount(*texts, ctypes.c_ulong(flags), options.encode()))


def mount_proc() -> None:
    mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)


def set_attributes(descriptor: int, path: str, flags: int, attributes: int) -> None:
    fields = (ctypes.c_uint64 * 4)(attributes, 0, 0, 0)  # set, clear, propagation, user namespace
    arguments = (ctypes.c_int(descriptor), path.encode(), ctypes.c_uint(flags), ctypes.byref(fields))
    _call(f"mount_setattr {path}", libc.syscall(_MOUNT_SETATTR, *arguments, ctypes.c_size_t(32)))


def open_tree(path: str) -> int:
    """What is there now, as something to be mounted. A path with a link in it may lead elsewhere than it was meant."""
    place = os.open("/", os.O_PATH)
    for part in path.strip("/").split("/"):
        above = place
        try:
            place = os.open(part, os.O_PATH | os.O_NOFOLLOW, dir_fd=above)
        finally:
            os.close(above)
        if stat.S_ISLNK(os.fstat(place).st_mode):
            os.close(place)
            raise OSError(f"{path} is reached by a link")
    try:
        flags = _CLONE | _CLOEXEC | _RECURSIVE | _EMPTY_PATH
        return _call(f"open_tree {path}", libc.syscall(_OPEN_TREE, place, b"", ctypes.c_uint(flags)))
    finally:
        os.close(place)


def move_mount(descriptor: int, path: str) -> None:
    arguments = (ctypes.c_int(descriptor), b"", _HERE, path.encode(), ctypes.c_uint(4))  # 4: the source is a descriptor
    _call(f"move_mount {path}", libc.syscall(_MOVE_MOUNT, *arguments))


# ------------------------------------------------------------------ what a program sees


def see(view: dict[str, Any]) -> None:
    """This machine, read-only; `covers` are empty folders in place of what is hidden; `shown` is there all the same."""
    mount("", "/", "", _MS_REC | _MS_PRIVATE)
    trees = [(open_tree(path), path, writable) for path, writable in view["shown"]]
    set_attributes(_HERE, "/", _RECURSIVE, _READ_ONLY | _NO_SUID)
    os.umask(0o022)
    if os.path.isdir("/dev/pts"):  # or it could open the terminals of its user
        mount("devpts", "/dev/pts", "devpts", _MS_NOSUID | _MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
    for path, options, _ in view["covers"]:
        if os.path.isdir(path):
            mount("tmpfs", path, "tmpfs", _MS_NOSUID | _MS_NODEV, options)
        else:
            with suppress(FileNotFoundError):  # a socket may be gone meanwhile
                mount("/dev/null", path, "", _MS_BIND)
    for descriptor, path, writable in trees:
        set_attributes(descriptor, "", _EMPTY_PATH | _RECURSIVE, _NO_SUID | _NO_DEV | (0 if writable else _READ_ONLY))
        _make_place(path, os.path.isdir(f"/proc/self/fd/{descriptor}"))
        move_mount(descriptor, path)
        os.close(descriptor)
    for link, target in view["links"]:
        with suppress(OSError):  # where nothing is hidden it is there
            os.makedirs(os.path.dirname(link), exist_ok=True)
            os.symlink(target, link)
    for path, _, writable in view["covers"]:
        if not writable and os.path.isdir(path):
            set_attributes(_HERE, path, 0, _READ_ONLY)


def _make_place(path: str, folder: bool) -> None:
    """Something to mount on, in an empty folder."""
    if not os.path.lexists(path):
        os.makedirs(path if folder else os.path.dirname(path), exist_ok=True)
        if not folder:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))


# ------------------------------------------------------------------ an image as /


def stand_on(root: dict[str, Any], user: int | None) -> list[Tree]:
    """`lower` is the image, and `/` from here on. What the program writes goes to memory, and with it.

    Gives what is to be mounted. No path that an image or a pod has chosen is used before this machine's file system is
    let go: any name could be that of a place in it.
    """
    mount("", "/", "", _MS_REC | _MS_PRIVATE)
    trees = [(open_tree(f"/dev/{name}"), f"/dev/{name}", _NO_SUID) for name in _DEVICES]
    for source, target, writable in root["mounts"]:
        trees.append((open_tree(source), target, _NO_SUID | _NO_DEV | (0 if writable else _READ_ONLY)))
    os.umask(0)
    _overlay(root["lower"], root["scratch"], f"mode=0755,size={root['size']}", user)
    os.mkdir(_BEFORE[1:], 0o700)
    _call("pivot_root", libc.pivot_root(b".", _BEFORE[1:].encode()))
    os.chdir("/")
    return trees


def let_go() -> None:
    """Of this machine's file system. Not before there is a /proc: who is not root mounts it only where one is seen."""
    if os.path.islink("/proc"):
        raise OSError("/proc is a link in the image: make it a folder")
    with suppress(FileExistsError):
        os.mkdir("/proc", 0o555)
    mount_proc()
    _call("umount2", libc.umount2(_BEFORE.encode(), _MNT_DETACH))
    os.rmdir(_BEFORE)


def furnish(root: dict[str, Any], trees: list[Tree], user: int | None) -> None:
    """Devices, volumes at their paths, links and the name of the host."""
    _make_devices(user)
    for path, mode in (("/tmp", 0o1777), (root["cwd"], 0o755)):  # noqa: S108
        _make_folders(path, mode, user)
    for descriptor, target, attributes in trees:
        _attach(descriptor, target, attributes, user)
    for link, target in root["links"]:
        _make_folders(os.path.dirname(link), 0o755, user)
        with suppress(FileNotFoundError):
            os.unlink(link)
        os.symlink(target, link)
    name = root["hostname"].encode()
    _call("sethostname", libc.sethostname(name, len(name)))
    set_variables(root, of_network=False)
    if root["read_only"]:
        set_attributes(_HERE, "/", 0, _READ_ONLY)


def set_variables(root: dict[str, Any], *, of_network: bool) -> None:
    """Of the kernel, where the namespaces that they are of are the container's, and ours to change."""
    for name, value in root["variables"].items():
        if name.startswith("net.") == of_network:
            try:
                with open(f"/proc/sys/{name.replace('.', '/')}", "w") as file:
                    file.write(value)
            except OSError as error:
                raise OSError(error.errno, f"sysctl {name}: {error.strerror}") from error


def _overlay(lower: str, scratch: str, memory: str, user: int | None) -> None:
    """Leaves us in the folder that is to be `/`."""
    mount("tmpfs", scratch, "tmpfs", _MS_NOSUID | _MS_NODEV, memory)
    os.chdir(scratch)
    for name in ("upper", "work", "merged"):
        os.mkdir(name, 0o755)
        os.chown(name, -1 if user is None else user, -1 if user is None else user)
    image = os.open(lower, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
    options = f"lowerdir=/proc/self/fd/{image},upperdir=upper,workdir=work" + (",userxattr" if user is None else "")
    try:
        mount("overlay", "merged", "overlay", _MS_NOSUID | _MS_NODEV, options)
    except OSError as error:
        needed = "a `root` needs overlay file systems, for users from Linux 5.11 on"
        raise OSError(error.errno, f"{error.strerror}: {needed}") from error
    finally:
        os.close(image)
    os.chdir("merged")


def _make_devices(user: int | None) -> None:
    _make_folders("/dev", 0o755, user)
    mount("tmpfs", "/dev", "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=0755")
    for path in ("/dev/pts", "/dev/shm"):  # noqa: S108
        os.mkdir(path, 0o755)
    mount("devpts", "/dev/pts", "devpts", _MS_NOSUID | _MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
    mount("tmpfs", "/dev/shm", "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=1777")  # noqa: S108
    links = {"ptmx": "pts/ptmx", "fd": "/proc/self/fd"}
    streams = {name: f"/proc/self/fd/{number}" for number, name in enumerate(("stdin", "stdout", "stderr"))}
    for name, target in {**links, **streams}.items():
        os.symlink(target, f"/dev/{name}")


def _attach(descriptor: int, target: str, attributes: int, user: int | None) -> None:
    set_attributes(descriptor, "", _EMPTY_PATH | _RECURSIVE, attributes)
    folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
    place = os.path.realpath(target)
    if place == "/" or place.split("/")[1] == "proc":
        raise OSError(f"mount {target}: nothing is mounted at / or in /proc")
    _make_folders(place if folder else os.path.dirname(place), 0o755, user)
    if not folder and not os.path.exists(place):
        os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
    move_mount(descriptor, place)
    os.close(descriptor)


def _make_folders(path: str, mode: int, user: int | None) -> None:
    """Those that are missing, owned by the program's user."""
    path = os.path.realpath(path)
    if not os.path.isdir(path):
        _make_folders(os.path.dirname(path), 0o755, user)
        os.mkdir(path, mode)
        if user is not None:
            os.chown(path, user, user)


# ------------------------------------------------------------------ namespaces and users


def leave_host(user: int | None, ids: list[int] | None, target: int | None) -> None:
    """New namespaces; that of processes is for children, and another container's if that is wanted."""
    ours = [os.getuid(), os.getgid()]
    if target is not None:  # with its users: only these have a right to its processes
        enter_namespaces(target, user, ("pid_for_children",))
        _call("unshare", libc.unshare(_NEWNS | _NEWUTS | _NEWIPC))
        return
    own = _NEWUSER if user is None else 0
    _call("unshare", libc.unshare(_NEWNS | _NEWUTS | _NEWIPC | _NEWPID | own))
    if own:
        map_ids(ids or ours, ours)


def map_ids(inner: list[int], outer: list[int]) -> None:
    """Who is who in the user namespace that we have just made."""
    maps = [("uid_map", f"{inner[0]} {outer[0]} 1"), ("gid_map", f"{inner[1]} {outer[1]} 1")]
    for name, text in (("setgroups", "deny"), *maps):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def enter_network(network: int, user: int | None) -> None:
    """Before all else: in a user namespace of our own we would have no right to it any more."""
    for descriptor, kind in ((user, _NEWUSER), (network, _NEWNET)):
        if descriptor is not None:
            _call("setns", libc.setns(descriptor, kind))
            os.close(descriptor)


def enter_namespaces(keeper: int, user: int | None, names: tuple[str, ...]) -> None:
    """Those of a keeper's program; first that of its users, where that is one of its own."""
    wanted = (*(("user",) if user is None else ()), *names)
    descriptors = [(os.open(f"/proc/{keeper}/ns/{name}", os.O_RDONLY), _NAMESPACES[name]) for name in wanted]
    for descriptor, kind in descriptors:
        _call("setns", libc.setns(descriptor, kind))
        os.close(descriptor)


def become_user(user: int | None, ids: list[int] | None) -> None:
    """Without any privilege from here on, and no way to get one."""
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    if user is not None and ids is not None:
        _call("unshare a user namespace (is user.max_user_namespaces 0?)", libc.unshare(_NEWUSER))
        libc.prctl(_PR_SET_DUMPABLE, 1)  # or our files in /proc are root's
        map_ids(ids, [user, user])
        libc.prctl(_PR_SET_DUMPABLE, 0)
    give_up_privileges()


def join_user(ids: list[int]) -> None:
    """That of the program beside which we are to run, from root and inside of its other namespaces."""
    descriptor = os.open("/proc/1/ns/user", os.O_RDONLY)
    os.setgroups([])
    _call("setns", libc.setns(descriptor, _NEWUSER))
    os.close(descriptor)
    os.setresgid(ids[1], ids[1], ids[1])
    os.setresuid(ids[0], ids[0], ids[0])
    give_up_privileges()
    die_with_parent()  # that does not survive another user


def give_up_privileges() -> None:
    header, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    _call("capset", libc.capset(ctypes.byref(header), ctypes.byref(none)))
    _call("prctl", libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


# ------------------------------------------------------------------ keeper, first process, program


def die_with_parent() -> None:
    if sys.platform == "linux":
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def keep(child: int, nothing: int) -> None:
    """Pass signals on until the child has ended; never returns. `nothing` is /dev/null, which an image has not yet."""
    for descriptor in range(3):
        os.dup2(nothing, descriptor)
    wanted = signal.valid_signals()
    while True:
        number = signal.sigwait(wanted)
        if number not in _NOT_PASSED_ON:
            with suppress(OSError):
                os.kill(child, number)
        ended = -1
        while ended:
            try:
                ended, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                os._exit(137)
            if ended == child:
                code = os.waitstatus_to_exitcode(status)
                os._exit(code if code >= 0 else 128 - code)


def fork() -> int:
    """As os.fork; the parent gets no signal until it asks for them."""
    signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
    child = os.fork()
    if not child:
        die_with_parent()
    return child


def enter(options: dict[str, Any]) -> None:
    """Returns in the process that is to be the program, inside; raises OSError before there is one."""
    user, status, ids = options["user"], options["status"], options.get("ids")
    mapped = user is not None and ids is not None
    trees: list[Tree] = []
    nothing = os.open(os.devnull, os.O_RDWR)
    own_streams(user)
    if options.get("network") is not None:
        enter_network(options["network"], options["network_user"])
        if ids is not None and "join" not in options:
            set_variables(options["view"], of_network=True)
    if "join" in options:
        enter_namespaces(options["join"], user, ("mnt", "uts", "ipc", "pid_for_children"))
        if not mapped:
            become_user(user, ids)
    else:
        leave_host(user, ids, options.get("target"))
        if ids is None:
            see(options["view"])
        else:
            trees = stand_on(options["view"], user)
        die_with_parent()
    child = fork()
    if child:
        for descriptor in (status, *(tree[0] for tree in trees)):
            os.close(descriptor)
        keep(child, nothing)
    if "join" not in options:
        begin_first_process(options, trees, nothing)
    elif mapped:
        join_user(options["ids"])
    os.chdir(options["cwd"])
    if options["terminal"]:
        os.setsid()
    else:
        os.setpgid(0, 0)


def begin_first_process(options: dict[str, Any], trees: list[Tree], nothing: int) -> None:
    """Returns in the program's process."""
    user, status, ids = options["user"], options["status"], options.get("ids")
    if ids is None:
        mount_proc()
    else:
        let_go()
        furnish(options["view"], trees, user)
    become_user(user, ids)
    die_with_parent()  # that does not survive another user
    child = fork()
    if child:
        os.close(status)
        keep(child, nothing)


def own_streams(user: int | None) -> None:
    """A program may open /dev/stdout."""
    for descriptor in range(3) if user is not None else ():
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor):
            os.fchown(descriptor, user or -1, -1)


def found(name: str, path: str) -> str:
    """A program in the image; the errors are those of a container engine. Raises OSError."""
    places = [name] if "/" in name else [f"{folder}/{name}" for folder in path.split(":") if folder]
    there = [place for place in places if os.path.isfile(place)]
    for place in there:
        if os.access(place, os.X_OK):
            return place
    if there:
        raise OSError(f'exec: "{name}": permission denied')
    if "/" in name:
        raise OSError(f'exec: "{name}": stat {name}: no such file or directory')
    raise OSError(f'exec: "{name}": executable file not found in $PATH')


def main() -> None:
    options, program, arguments = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3:]
    env = {name.removeprefix(PREFIX): value for name, value in os.environ.items() if name.startswith(PREFIX)}
    die_with_parent()
    if os.getppid() != options["parent"]:
        os._exit(137)  # it died before we asked
    if "status" in options:
        try:
            enter(options)
            if "ids" in options:
                program = found(program, env.get("PATH", ""))
            os.close(options["status"])
        except OSError as error:
            with suppress(OSError):
                os.write(options["status"], str(error.strerror or error).encode())
            os._exit(128)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)  # Python ignores them, and a program would inherit that
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if options["terminal"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.umask(0o022 if "ids" in options else 0o077)
    try:
        os.execve(program, arguments, env)  # noqa: S606 - the whole point
    except OSError as error:
        sys.stderr.write(f"exec {program}: {error.strerror}\n")
        os._exit(126)


if __name__ == "__main__":
    main()
