"""`python -m konverge.operators.nacos.backup.carry`: what runs beside the programs of databases.

    carry upload    store $FILE and its manifest in a bucket, as $KEY; the manifest comes last
    carry fetch     the way back, compared with $SHA256
    carry inspect   read the manifest of $KEY, or of $FILE in a volume, and compare the data with it
    carry delete    remove the objects $KEYS, and nothing else

It runs in the image of Konverge, and is one of the few modules that read the environment. The credentials are files of
the Secret, which is mounted: they are on no command line, in no variable, and in no message.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

import msgspec

from konverge.operators.nacos.backup.failures import Failure
from konverge.operators.nacos.backup.manifest import LONGEST, SUFFIX, check_data, read_manifest, sha256_of
from konverge.operators.nacos.backup.s3.connection import Connection, Place
from konverge.operators.nacos.backup.s3.objects import Objects
from konverge.operators.nacos.backup.s3.signature import Credentials


def upload(objects: Objects, key: str, keys: list[str], file: Path) -> str:
    """The termination message. What earlier attempts left goes first: data of one and a manifest of another would look
    whole."""
    try:
        manifest = Path(f"{file}{SUFFIX}").read_bytes()
        size, sha256 = file.stat().st_size, sha256_of(file)
    except FileNotFoundError:
        raise Failure("DumpMissing", f"there is no file {file}: the program of the database left none") from None
    check_data(size, sha256, read_manifest(manifest, f"{file}{SUFFIX}"), str(file))
    remove(objects, keys)
    objects.upload(key, file)
    stored = objects.digest(key)
    if stored != (size, sha256):
        objects.delete(key)
        message = f"{key} was stored with {stored[0]} bytes and the sha256 {stored[1]}, not {size} and {sha256}"
        raise Failure("ChecksumMismatch", f"{message}; it was deleted again: check the storage")
    objects.put(key + SUFFIX, manifest)
    return msgspec.json.encode({"size": size, "sha256": sha256}).decode()


def remove(objects: Objects, keys: list[str]) -> None:
    for key in keys:
        objects.delete(key + SUFFIX)  # first: without it the data is not taken for whole
        objects.delete(key)
        objects.abort_uploads(key)


def delete(objects: Objects, keys: list[str]) -> str:
    try:
        remove(objects, keys)
    except Failure as failure:
        if failure.reason != "BucketNotFound":
            raise
    return ""


def fetch(objects: Objects, key: str, file: Path, sha256: str) -> str:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _, found = objects.fetch(key, file)
    if found != sha256:
        message = f"{key} is not what was stored: its sha256 is {found}, and must be {sha256}; choose another backup"
        raise Failure("ChecksumMismatch", message)
    return ""


def inspect_object(objects: Objects, key: str) -> str:
    try:
        data = objects.read(key + SUFFIX, LONGEST + 1)
    except Failure as failure:
        if failure.reason != "ObjectNotFound":
            raise
        raise _no_manifest(key) from None
    manifest = read_manifest(data, key + SUFFIX)
    check_data(*objects.digest(key), manifest, key)
    return msgspec.json.encode(manifest).decode()


def inspect_file(file: Path) -> str:
    beside = Path(f"{file}{SUFFIX}")
    try:
        with beside.open("rb") as opened:
            data = opened.read(LONGEST + 1)
    except OSError:
        raise _no_manifest(str(file)) from None
    manifest = read_manifest(data, str(beside))
    try:
        found = file.stat().st_size, sha256_of(file)
    except OSError as error:
        raise Failure("DataNotFound", f"{file} cannot be read: {error.strerror}; correct the path") from None
    check_data(*found, manifest, str(file))
    return msgspec.json.encode(manifest).decode()


def _no_manifest(data: str) -> Failure:
    message = f"there is no {data}{SUFFIX}: the path is wrong, the backup is not whole, or an older version made it"
    return Failure("ManifestMissing", f"{message}; nothing was changed")


# ------------------------------------------------------------------ the program


def credentials_from(env: Mapping[str, str]) -> Callable[[], Credentials]:
    folder = Path(env["S3_CREDENTIALS"])

    def read() -> Credentials:
        texts = [_text(folder / env[name]) for name in ("S3_ACCESS_KEY", "S3_SECRET_KEY", "S3_SESSION_TOKEN")]
        if not texts[0] or not texts[1]:
            names = f"{env['S3_ACCESS_KEY']} and {env['S3_SECRET_KEY']}"
            raise Failure("InvalidCredentials", f"the Secret that credentialsSecret names must have the keys {names}")
        return Credentials(*texts)

    return read


def _text(file: Path) -> str:
    try:
        return file.read_text().strip()
    except FileNotFoundError:
        return ""


def objects_from(env: Mapping[str, str]) -> Objects:
    authority = env.get("S3_CA")
    place = Place(
        endpoint=env["S3_ENDPOINT"].rstrip("/"),
        bucket=env["S3_BUCKET"],
        region=env["S3_REGION"],
        path_style=env["S3_PATH_STYLE"] == "true",
        credentials=credentials_from(env),
        authority=Path(authority) if authority else None,
    )
    return Objects(Connection(place))


def run(action: str, env: Mapping[str, str], objects: Objects | None) -> str:
    """The termination message. Raises Failure, OSError."""
    if objects is None:
        return inspect_file(Path(env["FILE"]))
    if action == "upload":
        return upload(objects, env["KEY"], env["KEYS"].split(), Path(env["FILE"]))
    if action == "fetch":
        return fetch(objects, env["KEY"], Path(env["FILE"]), env["SHA256"])
    if action == "inspect":
        return inspect_object(objects, env["KEY"])
    return delete(objects, env["KEYS"].split())


def main(arguments: list[str], env: Mapping[str, str], out: IO[str]) -> int:
    result = Path(env["RESULT"])
    try:
        result.write_text(run(arguments[0], env, objects_from(env) if "S3_BUCKET" in env else None))
    except Failure as failure:
        result.write_text(failure.encode())
        print(failure, file=out)
        return 1
    except OSError as error:
        print(error, file=out)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ, sys.stderr))
