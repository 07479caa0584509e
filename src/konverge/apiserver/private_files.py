"""Files that hold a secret: written as a whole or not at all, for no other user to read, and checked when read.

A crash or a full disk in the middle of a write must not leave an empty key behind: with an empty token the
administrator is locked out, with an empty key every token of a service account fails.
"""

from __future__ import annotations

import binascii
import os
import re
import secrets
from pathlib import Path

from konverge.apiserver.storage.folder import PRIVATE_FILE, FolderError, sync_folder

_PEM = re.compile(rb"\s*-----BEGIN ([A-Z0-9 ]+)-----\r?\n(.+?)-----END \1-----\s*", re.DOTALL).fullmatch
_SEQUENCE = 0x30


def write_private(path: Path, data: bytes) -> None:
    """Replace a file at once: whoever reads it sees the old content or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def read_text(path: Path, what: str) -> str:
    """A text that must not be empty. Raises FolderError."""
    text = path.read_text(errors="replace").strip()
    if not text:
        raise _broken(path, "is empty", what)
    return text


def read_pem(path: Path, what: str) -> bytes:
    """One key or certificate; whether it is whole is seen without reading its content. Raises FolderError."""
    data = path.read_bytes()
    match = _PEM(data)
    if match is None or not _is_whole(match[2]):
        raise _broken(path, "is empty" if not data.strip() else "is damaged", what)
    return data


def _is_whole(encoded: bytes) -> bool:
    """A sequence in DER says at its beginning how long it is."""
    try:
        der = binascii.a2b_base64(b"".join(encoded.split()), strict_mode=True)
    except binascii.Error:
        return False
    if len(der) < 2 or der[0] != _SEQUENCE:
        return False
    size, header = der[1], 2
    if size & 0x80:
        header += size & 0x7F
        size = int.from_bytes(der[2:header], "big")
    return header + size == len(der)


def _broken(path: Path, problem: str, what: str) -> FolderError:
    return FolderError(f"{path} {problem}: restore it from a copy, or delete it, and {what}")
