"""Files with secrets: whole or absent, private, and refused when they are broken."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from konverge.apiserver import ApiServer
from konverge.apiserver.private_files import read_pem, write_private
from konverge.apiserver.storage.folder import FolderError
from tests.apiserver.api import Api

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


def test_a_file_is_replaced_as_a_whole_and_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "folder" / "key"
    write_private(path, b"old")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            write_private(path, b"new")
    assert [entry.name for entry in path.parent.iterdir()] == ["key"]
    assert path.read_bytes() == b"old"
    write_private(path, b"new")
    assert path.read_bytes() == b"new"


async def _started(folder: Path) -> None:
    async with ApiServer(data_dir=folder) as server:
        api = Api(server)
        await api.create("robot", ACCOUNTS)
        await api.call("POST", f"{ACCOUNTS}/robot/token", {"spec": {"audiences": []}})
        server.certificates("localhost")


def _halved(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _short_inside(data: bytes) -> bytes:
    """One line less between the marks, which all stay."""
    lines = data.splitlines(keepends=True)
    return b"".join([*lines[:3], *lines[4:]])


@pytest.mark.spec("T-03")
@pytest.mark.parametrize(
    "damage", [lambda data: b"", lambda data: b"\n", _halved, _short_inside, lambda data: b"x" * 99]
)
@pytest.mark.parametrize("name", ["service-account.key", "pki/authority.pem", "pki/server_key.pem"])
async def test_a_damaged_key_is_refused_at_start(tmp_path: Path, name: str, damage: Callable[[bytes], bytes]) -> None:
    await _started(tmp_path)
    path = tmp_path / name
    path.write_bytes(damage(path.read_bytes()))
    async with AsyncExitStack() as stack:

        def start() -> None:
            server = ApiServer(data_dir=tmp_path)
            stack.push_async_callback(server.stop)
            server.certificates("localhost")

        with pytest.raises(FolderError, match=f"{name} is (empty|damaged): restore it from a copy, or delete"):
            start()


@pytest.mark.spec("T-03")
async def test_an_empty_token_is_refused_at_start(tmp_path: Path) -> None:
    await _started(tmp_path)
    (tmp_path / "token").write_text("\n")
    with pytest.raises(
        FolderError, match="token is empty: restore it from a copy, or delete it, and a new token is made"
    ):
        ApiServer(data_dir=tmp_path)
    (tmp_path / "token").unlink()
    async with ApiServer(data_dir=tmp_path) as server:
        assert (await Api(server).send("GET", ACCOUNTS)).status == 200


def test_keys_that_are_whole_are_read(tmp_path: Path) -> None:
    from konverge.apiserver.auth import pem_keys

    path = tmp_path / "key"
    path.write_bytes(pem_keys.make())
    assert read_pem(path, "") == path.read_bytes()
