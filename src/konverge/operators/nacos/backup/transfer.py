"""`python -m konverge.operators.nacos.backup.transfer`: what runs in the Jobs of method Configuration.

    transfer backup    read all namespaces and configurations by the API of the servers, write them to $FILE
    transfer restore   publish them again
    transfer delete    remove $FILES, and what belongs to them

The image of Konverge has no shell, so this does what the scripts of the database do, by the same variables; it is one
of the few modules that read the environment. The file is gzip of JSON lines: a header, then a line for each namespace
and configuration. One line at a time is in memory.
"""

from __future__ import annotations

import asyncio
import gzip
import os
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import IO

import msgspec

from konverge.operators.nacos.backup.manifest import SUFFIX, sha256_of
from konverge.operators.nacos.content.api import PUBLIC, ConfigKey, ContentApi, Login, Tokens, digest
from konverge.operators.nacos.server import HttpNacosServers, Identity, NacosError

FORMAT = 1
PAGES = (100, 10, 1)
"""Configurations of one page. Servers of 2.x list them with their contents: a page may be too large to be read."""
READINGS = 10
"""Of all pages, until they do not shift. The Job is repeated after that, and fails rather than leave anything out."""


class TransferError(Exception):
    """For people: it becomes the termination message of the pod."""


class Header(msgspec.Struct, tag_field="line", tag="header"):
    """The first line."""

    format: int = FORMAT


class NamespaceLine(msgspec.Struct, tag_field="line", tag="namespace"):
    id: str
    title: str = ""
    description: str = ""


class ConfigLine(msgspec.Struct, tag_field="line", tag="config"):
    namespace: str
    group: str
    data_id: str
    content: str
    type: str = "text"
    md5: str = ""


class EndLine(msgspec.Struct, tag_field="line", tag="end"):
    """The last line: a file without it is not whole."""

    namespaces: int
    configs: int


Line = Header | NamespaceLine | ConfigLine | EndLine


# ------------------------------------------------------------------ reading


async def read_all(api: ContentApi) -> AsyncIterator[Line]:
    """Everything that the servers hold. What changes meanwhile is read in one state or the other."""
    yield Header()
    spaces = await api.namespaces()
    for space, entry in sorted(spaces.items()):
        if space != PUBLIC:
            yield NamespaceLine(space, entry.namespace_show_name, entry.namespace_desc or "")
    count = 0
    for space in sorted(spaces):
        for key in await keys_in(api, space):
            stored = await api.config(key)
            if stored is None or stored.content is None:
                continue  # deleted meanwhile
            count += 1
            type, md5 = stored.type or "text", digest(stored.content)
            yield ConfigLine(key.namespace, key.group, key.data_id, stored.content, type, md5)
    yield EndLine(len(spaces) - 1, count)


async def keys_in(api: ContentApi, space: str) -> list[ConfigKey]:
    """All of a namespace, before the first is read: pages shift when others write."""
    for size in PAGES:
        try:
            return await _keys_by(api, space, size)
        except NacosError as error:
            if error.reason != "BadAnswer" or size == PAGES[-1]:
                raise
    raise AssertionError("there is a last size")


async def _keys_by(api: ContentApi, space: str, size: int) -> list[ConfigKey]:
    """What is deleted moves all that follows up, past the end of a page that was read. So the pages are read until all
    of one reading is there in the next one: nothing had moved."""
    before: dict[ConfigKey, None] | None = None
    for _ in range(READINGS):
        found, pages = await _reading(api, space, size)
        if pages == 1 or (before is not None and before.keys() <= found.keys()):
            return list(found)
        before = found
    message = f"configurations of namespace {space} go away while they are listed: {READINGS} readings were not enough"
    raise TransferError(message)


async def _reading(api: ContentApi, space: str, size: int) -> tuple[dict[ConfigKey, None], int]:
    """Of all pages, and how many were asked for."""
    found: dict[ConfigKey, None] = {}
    number, pages = 0, 1
    while number < pages:
        number += 1
        keys, pages = await api.config_keys(space, number, size)
        found |= dict.fromkeys(keys)
    return found, number


async def back_up(api: ContentApi, file: Path, files: list[str], manifest: str) -> str:
    """The termination message. `files` are the data of all attempts so far; the manifest lacks size and digest."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for left in (f"{file}{SUFFIX}", *(f"{path}.part" for path in files)):
        Path(left).unlink(missing_ok=True)
    part = Path(f"{file}.part")
    try:
        with os.fdopen(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as raw:
            with gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as packed:
                async for line in read_all(api):
                    packed.write(msgspec.json.encode(line) + b"\n")
            raw.flush()
            os.fsync(raw.fileno())
        size, sha256 = part.stat().st_size, sha256_of(part)
        _rename(part, file)
        stored = {"size": size, "sha256": sha256}
        _write(part, msgspec.json.encode({**msgspec.json.decode(manifest, type=dict), **stored}))
        _rename(part, Path(f"{file}{SUFFIX}"))
    finally:
        part.unlink(missing_ok=True)
    return msgspec.json.encode(stored).decode()


def _rename(part: Path, file: Path) -> None:
    """On the disk, too: what is reported as stored outlives the node's power."""
    part.rename(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _write(file: Path, data: bytes) -> None:
    with os.fdopen(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as raw:
        raw.write(data)
        raw.flush()
        os.fsync(raw.fileno())


# ------------------------------------------------------------------ writing


def lines_of(file: Path) -> Iterator[Line]:
    """Raises TransferError for a file that is not whole."""
    read = msgspec.json.Decoder(Line).decode
    last: Line | None = None
    try:
        with gzip.open(file, "rb") as packed:
            for number, text in enumerate(packed):
                last = read(text)
                if number == 0 and (not isinstance(last, Header) or last.format != FORMAT):
                    raise TransferError(f"{file} is of another format; it was made by a newer version")
                yield last
    except (msgspec.MsgspecError, EOFError, OSError) as error:
        raise TransferError(f"{file} cannot be read: {error}") from error
    if not isinstance(last, EndLine):
        raise TransferError(f"{file} is not whole")


async def restore(api: ContentApi, file: Path, sha256: str, *, overwrite: bool) -> str:
    """What is there and not in the file stays. It can be repeated: each configuration is published as it was."""
    if not file.is_file():
        raise TransferError(f"there is no file {file} in the volume")
    if (found := sha256_of(file)) != sha256:
        raise TransferError(f"{file} is not what was stored: its sha256 is {found}, and must be {sha256}")
    for _ in lines_of(file):
        pass  # read to its end before anything is written
    spaces = await api.namespaces()
    if not overwrite and (set(spaces) != {PUBLIC} or (await api.config_keys(PUBLIC, 1, 1))[0]):
        raise TransferError("the Nacos holds namespaces or configurations; overwrite: true writes over them")
    for line in lines_of(file):
        if isinstance(line, NamespaceLine):
            write = api.update_namespace if line.id in spaces else api.create_namespace
            await write(line.id, line.title, line.description)
        elif isinstance(line, ConfigLine):
            key = ConfigKey(line.namespace, line.group, line.data_id)
            await api.publish(key, line.content, line.type, "")
    return ""


def delete(files: list[str]) -> str:
    for file in files:
        for end in (SUFFIX, "", ".part"):
            Path(f"{file}{end}").unlink(missing_ok=True)
    return ""


# ------------------------------------------------------------------ the program


def api_from(env: Mapping[str, str]) -> ContentApi:
    """The servers that the variables of the Job name."""
    key, value, password = env.get("IDENTITY_KEY"), env.get("IDENTITY_VALUE"), env.get("ADMIN_PASSWORD")
    return ContentApi(
        servers=HttpNacosServers(),
        uid="",
        addresses=(env["NACOS_ADDRESS"],),
        third=env.get("NACOS_MAJOR") == "3",
        identity=Identity(key, value) if key and value else None,
        login=Login(env.get("ADMIN_USERNAME") or "nacos", password) if password else None,
        tokens=Tokens(),
        timeout=30.0,
    )


async def run(action: str, env: Mapping[str, str]) -> str:
    """The termination message. Raises TransferError, NacosError, OSError."""
    if action == "delete":
        return delete(env["FILES"].split())
    api, file = api_from(env), Path(env["FILE"])
    if action == "backup":
        return await back_up(api, file, env["FILES"].split(), env["MANIFEST"])
    return await restore(api, file, env["SHA256"], overwrite=env["OVERWRITE"] == "true")


def main(arguments: list[str], env: Mapping[str, str], out: IO[str]) -> int:
    try:
        message = asyncio.run(run(arguments[0], env))
    except (TransferError, NacosError, OSError) as error:
        print(error, file=out)
        return 1
    if message:
        Path(env["RESULT"]).write_text(message)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ, sys.stderr))
