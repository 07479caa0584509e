"""The user's own kubeconfig, where `konverge up --merge-kubeconfig` puts its context and takes it out again.

Written as kubectl writes it: under `config.lock`, in the file that is behind a link, with the mode that it has; and at
once, so that a reader sees the old content or the new one. A file that cannot be read as a kubeconfig is never touched.
"""

from __future__ import annotations

import errno
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from konverge import clock
from konverge.cli.exit import CommandFailed
from konverge.cli.kubeconfig_text import NotEditable, current_context, with_context, without_context

LOCKED_FOR = 10.0
_POLL = 0.1
_PRIVATE = 0o600
_EMPTY = "apiVersion: v1\nkind: Config\n"


def user_kubeconfig(environment: Mapping[str, str]) -> Path:
    """The file to write to: of those in KUBECONFIG the first that exists, or the first; else `~/.kube/config`."""
    listed = user_kubeconfigs(environment)
    return next((path for path in listed if path.exists()), listed[0])


def merge(path: Path, name: str, kubeconfig: Mapping[str, Any], *, switch: bool) -> None:
    """Put the cluster and the user of a kubeconfig of ours in, as `name`. It becomes the current context when asked
    for, or if there is none. Raises CommandFailed.
    """
    cluster, user = kubeconfig["clusters"][0]["cluster"], kubeconfig["users"][0]["user"]

    def edit(text: str) -> str:
        # Of several files the first that has a current context wins: one that is set elsewhere must not be hidden.
        others = (other for other in user_kubeconfigs(os.environ) if other != path)
        make_current = switch or not (current_context(text) or any(map(_current, others)))
        return with_context(text or _EMPTY, name, cluster, user, make_current=make_current)

    _edit(path, edit)


def unmerge(path: Path, name: str) -> bool:
    """Take the context out again, if it is there and ours. Raises CommandFailed. Returns whether it was."""
    return path.exists() and _edit(path, lambda text: without_context(text, name))


def user_kubeconfigs(environment: Mapping[str, str]) -> list[Path]:
    """All that kubectl reads, in its order."""
    parts = [Path(part).expanduser() for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    if parts:
        return parts
    try:
        return [Path.home() / ".kube" / "config"]
    except RuntimeError as error:
        raise FileNotFoundError("this user has no home: set HOME to a folder, or KUBECONFIG to a file") from error


def _current(path: Path) -> str:
    with suppress(OSError, UnicodeDecodeError, NotEditable):
        return current_context(path.read_text(encoding="utf-8"))
    return ""


def _edit(path: Path, edit: Callable[[str], str]) -> bool:
    with _locked(path):
        try:
            text = path.read_bytes().decode() if path.exists() else ""
            edited = edit(text)
        except UnicodeDecodeError as error:
            raise CommandFailed(f"{path} was left as it is: it is not UTF-8") from error
        except NotEditable as error:
            raise CommandFailed(f"{path} was left as it is: {error}") from error
        if edited == text:
            return False
        if path.exists() and not os.access(path, os.W_OK):  # it could be replaced nevertheless, but is not meant to be
            raise CommandFailed(f"{path} was left as it is: it is read-only")
        _replace(path.resolve(), edited.encode())
        return True


def _replace(path: Path, data: bytes) -> None:
    """Whoever reads it sees the old content or the new one; mode and owner stay."""
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE)
        with os.fdopen(descriptor, "wb") as file:
            with suppress(FileNotFoundError):
                status = path.stat()
                with suppress(PermissionError):
                    os.fchown(descriptor, status.st_uid, status.st_gid)
                os.fchmod(descriptor, status.st_mode & 0o7777)
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        try:
            new.replace(path)
        except OSError as error:
            if error.errno not in (errno.EBUSY, errno.EXDEV):
                raise
            _write_in_place(path, data)  # a file that is mounted by itself, as into a container
            new.unlink()
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def _write_in_place(path: Path, data: bytes) -> None:
    with path.open("r+b") as file:
        file.write(data)
        file.truncate()
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """The lock of kubectl (upstream: `lockFile` in client-go/tools/clientcmd)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.with_name(path.name + ".lock")
    deadline = clock.monotonic() + LOCKED_FOR
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL, 0))
            break
        except FileExistsError:
            if clock.monotonic() > deadline:
                raise CommandFailed(f"{lock} exists: another program writes; if none does, remove it") from None
            time.sleep(_POLL)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
