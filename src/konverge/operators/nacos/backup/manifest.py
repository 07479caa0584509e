"""The manifest of stored data: what a restore must know that has no NacosBackup.

It lies beside the data, `<data>.manifest.json`, and is written after it: data that has no manifest may be half of it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from konverge.operators.nacos.backup.failures import Failure

SUFFIX = ".manifest.json"
FORMAT = 1
LONGEST = 3000
"""Bytes of a manifest: it passes through a termination message."""
_METHODS = ("Database", "Configuration")


class Manifest(msgspec.Struct, rename="camel", kw_only=True, omit_defaults=False):
    """Of one backup. Newer versions may add fields, and count `format` up when older ones must not read it."""

    format: int = FORMAT
    backup: str = ""
    """Namespace and name of the NacosBackup."""
    nacos: str = ""
    """The name of the Nacos."""
    nacos_version: str = ""
    method: str
    engine: str
    schema: str = ""
    created: str = ""
    size: int = 0
    sha256: str = ""


def read_manifest(data: bytes, place: str) -> Manifest:
    """Raises Failure for one that this version does not understand."""
    if len(data) > LONGEST:
        raise Failure("ManifestInvalid", f"{place} is no manifest of a backup: it has more than {LONGEST} bytes")
    try:
        manifest = msgspec.json.decode(data, type=Manifest)
    except msgspec.MsgspecError as error:
        raise Failure("ManifestInvalid", f"{place} is no manifest of a backup: {error}") from None
    if manifest.format != FORMAT:
        message = f"{place} has format {manifest.format}, and this version reads {FORMAT}: use a newer Konverge"
        raise Failure("ManifestInvalid", message)
    if manifest.method not in _METHODS or manifest.size <= 0 or len(manifest.sha256) != 64:
        raise Failure("ManifestInvalid", f"{place} lacks the method, the size or the digest of the data")
    return manifest


def check_data(size: int, sha256: str, manifest: Manifest, place: str) -> None:
    """Raises Failure for data that is not what was stored."""
    if (size, sha256) != (manifest.size, manifest.sha256):
        message = (
            f"{place} is not what was stored: it has {size} bytes and the sha256 {sha256}, and its manifest says "
            f"{manifest.size} and {manifest.sha256}; choose another backup"
        )
        raise Failure("ChecksumMismatch", message)


def sha256_of(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
