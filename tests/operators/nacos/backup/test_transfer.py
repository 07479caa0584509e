"""What runs in the Jobs of method Configuration, on simulated servers of both lines."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from konverge.operators.nacos.backup import transfer
from konverge.operators.nacos.backup.manifest import SUFFIX, read_manifest
from konverge.operators.nacos.backup.runs import read_result
from konverge.operators.nacos.backup.transfer import TransferError
from konverge.operators.nacos.content.api import PUBLIC, ConfigKey, ContentApi, Tokens, digest
from konverge.operators.nacos.server import NacosError
from tests.operators.nacos.content.contract import ODD
from tests.operators.nacos.content.world import SECOND, THIRD, ContentWorld, a_nacos

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-62")]


async def fill(api: ContentApi, count: int = 3) -> None:
    await api.create_namespace("dev", "Development", "of the team")
    for space in (PUBLIC, "dev"):
        for number in range(count):
            await api.publish(ConfigKey(space, "DEFAULT_GROUP", f"app-{number}.yaml"), f"{space}: {number}", "yaml", "")
    await api.publish(ConfigKey("dev", "other", "odd"), ODD, "text", "")


async def clear(api: ContentApi) -> None:
    for space in (PUBLIC, "dev"):
        for key in await transfer.keys_in(api, space):
            await api.delete_config(key)
    await api.delete_namespace("dev")


async def held(api: ContentApi) -> dict[str, tuple[Any, Any]]:
    found: dict[str, tuple[Any, Any]] = {}
    for space in await api.namespaces():
        for key in await transfer.keys_in(api, space):
            stored = await api.config(key)
            assert stored is not None
            found[str(key)] = (stored.content, stored.type)
    return found


async def test_names_are_on_the_disk_before_they_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, list[str]]] = []

    def fsync(descriptor: int) -> None:
        names = sorted(path.name.removeprefix("a-1") for path in tmp_path.iterdir())
        seen.append((Path(f"/proc/self/fd/{descriptor}").readlink().name.removeprefix("a-1"), names))

    monkeypatch.setattr(transfer.os, "fsync", fsync)
    async with a_nacos(SECOND) as content:
        file = tmp_path / "a-1.jsonl.gz"
        await transfer.back_up(content.servers, file, [str(file)], "{}")
    data, part, manifest, folder = ".jsonl.gz", ".jsonl.gz.part", f".jsonl.gz{SUFFIX}", tmp_path.name
    assert seen == [(part, [part]), (folder, [data]), (part, [data, part]), (folder, [data, manifest])]


@pytest.mark.parametrize("spec", [SECOND, THIRD], ids=["2.x", "3.x"])
async def test_there_and_back(spec: dict[str, Any], tmp_path: Path) -> None:
    async with a_nacos(spec) as content:
        api = content.servers
        await fill(api)
        before = await held(api)
        assert len(before) == 7
        file = tmp_path / "deep" / "a-1.jsonl.gz"
        given = '{"format": 1, "method": "Configuration", "engine": "mysql"}'
        stored = read_result(await transfer.back_up(api, file, [str(file)], given))
        assert stored is not None
        assert (stored.size, stored.sha256) == (file.stat().st_size, transfer.sha256_of(file))
        assert file.stat().st_mode & 0o077 == 0
        beside = file.parent / f"a-1.jsonl.gz{SUFFIX}"
        assert sorted(file.parent.iterdir()) == [file, beside]
        assert beside.stat().st_mode & 0o077 == 0
        manifest = read_manifest(beside.read_bytes(), "x")
        assert (manifest.engine, manifest.size, manifest.sha256) == ("mysql", stored.size, stored.sha256)
        await clear(api)
        assert await held(api) == {}
        await transfer.restore(api, file, stored.sha256, overwrite=False)
        assert await held(api) == before
        space = (await api.namespaces())["dev"]
        assert (space.namespace_show_name, space.namespace_desc) == ("Development", "of the team")
        await transfer.restore(api, file, stored.sha256, overwrite=True)
        assert await held(api) == before, "it can be repeated"


async def test_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "PAGES", (2,))
    async with a_nacos(SECOND) as content:
        await fill(content.servers, 5)
        keys = await transfer.keys_in(content.servers, PUBLIC)
        assert len(set(keys)) == len(keys) == 5
        assert await transfer.keys_in(content.servers, "absent") == []


class Shifting(ContentApi, frozen=True):
    """Five configurations, which others change after each answer, as `between` says."""

    listed: list[str]
    asked: list[int]
    between: Callable[[list[str], int], None]

    async def config_keys(self, namespace: str, number: int, size: int) -> tuple[list[ConfigKey], int]:
        pages, start = -(-len(self.listed) // size), (number - 1) * size
        found = [ConfigKey(namespace, "g", name) for name in self.listed[start : start + size]]
        self.asked.append(number)
        self.between(self.listed, len(self.asked))
        return found, pages


def shifting(between: Callable[[list[str], int], None], count: int = 5) -> Shifting:
    given: dict[str, Any] = {"servers": None, "uid": "", "addresses": (), "third": False, "tokens": Tokens()}
    return Shifting(**given, listed=[f"{number}" for number in range(count)], asked=[], between=between)


@pytest.mark.spec("N-85")
class TestPagesThatShift:
    """What others delete moves each later configuration up by one: the first of the next page is on none."""

    @pytest.fixture(autouse=True)
    def pages(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(transfer, "PAGES", (2,))

    @staticmethod
    async def names(api: Shifting) -> list[str]:
        keys = [key.data_id for key in await transfer.keys_in(api, PUBLIC)]
        assert len(set(keys)) == len(keys)
        return sorted(keys)

    async def test_nobody_writes(self) -> None:
        api = shifting(lambda listed, asked: None)
        assert await self.names(api) == ["0", "1", "2", "3", "4"]
        assert api.asked == [1, 2, 3, 1, 2, 3], "a second time, to know that"

    @pytest.mark.parametrize("count", [0, 1, 2])
    async def test_one_page_cannot_shift(self, count: int) -> None:
        api = shifting(lambda listed, asked: None, count)
        assert len(await self.names(api)) == count
        assert api.asked == [1]

    async def test_one_goes(self) -> None:
        api = shifting(lambda listed, asked: listed.remove("0") if asked == 1 else None)
        assert await self.names(api) == ["1", "2", "3", "4"]
        assert api.asked == [1, 2, 1, 2, 1, 2]

    async def test_one_goes_and_one_comes(self) -> None:
        def between(listed: list[str], asked: int) -> None:
            if asked == 1:
                listed.remove("0")
                listed.append("new")

        assert await self.names(shifting(between)) == ["1", "2", "3", "4", "new"]

    async def test_one_goes_while_it_is_read_again(self) -> None:
        """The second reading adds what the first has missed, and misses another one."""

        def between(listed: list[str], asked: int) -> None:
            if asked in (1, 3):
                listed.pop(0)

        assert await self.names(shifting(between, 6)) == ["2", "3", "4", "5"]

    async def test_until_one_page_has_all(self) -> None:
        api = shifting(lambda listed, asked: listed.remove("0") if asked == 1 else None, 3)
        assert await self.names(api) == ["1", "2"]
        assert api.asked == [1, 2, 1]

    async def test_those_that_come_do_not_hold_it_up(self) -> None:
        api = shifting(lambda listed, asked: listed.append(f"new-{asked}") if asked % 3 == 0 else None)
        assert set(await self.names(api)) >= {"0", "1", "2", "3", "4"}
        assert len(api.asked) < 10

    @pytest.mark.parametrize(("passes", "enough"), [(8, True), (9, False)])
    async def test_there_is_no_backup_where_they_never_rest(self, passes: int, enough: bool) -> None:
        begun = 0

        def between(listed: list[str], asked: int) -> None:
            nonlocal begun
            begun += api.asked[-1] == 1
            if api.asked[-1] == 1 and begun <= passes:
                listed.pop(0)

        api = shifting(between, 40)
        if enough:
            assert set(await self.names(api)) == {f"{number}" for number in range(passes, 40)}
            return
        with pytest.raises(TransferError, match="of namespace public go away while they are listed: 10 readings"):
            await self.names(api)


async def test_pages_that_are_too_large_are_read_in_smaller_ones() -> None:
    async with a_nacos(SECOND) as content:
        for number in range(25):
            await content.servers.publish(ConfigKey(PUBLIC, "g", f"{number}"), "x" * 50_000, "text", "")
        with pytest.raises(NacosError, match="larger than"):
            await content.servers.config_keys(PUBLIC, 1, 100)
        assert len(await transfer.keys_in(content.servers, PUBLIC)) == 25


async def test_a_server_that_refuses_is_not_asked_for_less() -> None:
    async with a_nacos(SECOND) as content:
        asked: list[int] = []

        class Refusing(ContentApi):
            async def config_keys(self, namespace: str, number: int, size: int) -> tuple[list[ConfigKey], int]:
                asked.append(size)
                raise NacosError("BadAnswer" if namespace == "large" else "Forbidden", "no")

        api = Refusing(servers=content.servers.servers, uid="", addresses=(), third=False, tokens=Tokens())
        for space in ("closed", "large"):
            with pytest.raises(NacosError, match="no"):
                await transfer.keys_in(api, space)
        assert asked == [100, 100, 10, 1]


async def test_the_lines(tmp_path: Path) -> None:
    async with a_nacos(SECOND) as content:
        await fill(content.servers, 1)
        file = tmp_path / "a-1.jsonl.gz"
        await transfer.back_up(content.servers, file, [str(file)], "{}")
        lines = [msgspec.json.decode(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
        assert lines[0] == {"line": "header", "format": 1}
        assert lines[1] == {"line": "namespace", "id": "dev", "title": "Development", "description": "of the team"}
        configs = [line for line in lines if line["line"] == "config"]
        assert all(line["md5"] == digest(line["content"]) for line in configs)
        assert lines[-1] == {"line": "end", "namespaces": 1, "configs": 3}


@pytest.fixture
async def stored(tmp_path: Path) -> Any:
    async with a_nacos(SECOND) as content:
        file = tmp_path / "a-1.jsonl.gz"
        await content.servers.publish(ConfigKey(PUBLIC, "g", "a"), "a: 1", "yaml", "")
        await transfer.back_up(content.servers, file, [str(file)], "{}")
        yield content, file


class TestRefusals:
    async def test_what_is_there(self, stored: tuple[ContentWorld, Path]) -> None:
        content, file = stored
        sha256 = transfer.sha256_of(file)
        with pytest.raises(TransferError, match="overwrite: true"):
            await transfer.restore(content.servers, file, sha256, overwrite=False)
        await content.servers.delete_config(ConfigKey(PUBLIC, "g", "a"))
        await content.servers.create_namespace("dev", "dev", "")
        with pytest.raises(TransferError, match="overwrite: true"):
            await transfer.restore(content.servers, file, sha256, overwrite=False)
        await content.servers.delete_namespace("dev")
        await transfer.restore(content.servers, file, sha256, overwrite=False)

    async def test_another_digest(self, stored: tuple[ContentWorld, Path]) -> None:
        content, file = stored
        with pytest.raises(TransferError, match="is not what was stored"):
            await transfer.restore(content.servers, file, "0" * 64, overwrite=True)

    async def test_a_file_that_is_gone(self, stored: tuple[ContentWorld, Path]) -> None:
        content, file = stored
        sha256 = transfer.sha256_of(file)
        file.unlink()
        with pytest.raises(TransferError, match="there is no file"):
            await transfer.restore(content.servers, file, sha256, overwrite=True)

    @pytest.mark.parametrize(
        ("data", "words"),
        [
            (b"no gzip", "cannot be read"),
            (gzip.compress(b'{"line": "header", "format": 2}\n', mtime=0), "another format"),
            (gzip.compress(b'{"line": "end", "namespaces": 0, "configs": 0}\n', mtime=0), "another format"),
            (gzip.compress(b'{"line": "header", "format": 1}\n', mtime=0), "is not whole"),
            (gzip.compress(b'{"line": "header", "format": 1}\nnonsense\n', mtime=0), "cannot be read"),
            (gzip.compress(b"", mtime=0), "is not whole"),
        ],
    )
    async def test_a_file_that_is_not_whole(self, stored: tuple[ContentWorld, Path], data: bytes, words: str) -> None:
        content, file = stored
        file.write_bytes(data)
        before = await held(content.servers)
        with pytest.raises(TransferError, match=words):
            await transfer.restore(content.servers, file, transfer.sha256_of(file), overwrite=True)
        assert await held(content.servers) == before


async def test_a_server_that_fails_leaves_nothing(tmp_path: Path) -> None:
    async with a_nacos(SECOND) as content:
        api = content.servers
        await fill(api)
        (tmp_path / "a-0.jsonl.gz.part").write_text("of a killed attempt")
        (tmp_path / "b-0.jsonl.gz.part").write_text("of another backup")
        content.simulated.kill("nacos-0")
        files = [str(tmp_path / f"a-{number}.jsonl.gz") for number in (0, 1)]
        with pytest.raises(NacosError):
            await transfer.back_up(api, tmp_path / "a-1.jsonl.gz", files, "{}")
        assert [path.name for path in tmp_path.iterdir()] == ["b-0.jsonl.gz.part"]


def test_the_program(tmp_path: Path) -> None:
    for name in ("a-1.jsonl.gz", "a-1.jsonl.gz.manifest.json", "a-2.jsonl.gz.part", "a-2-1.jsonl.gz", "b-1.jsonl.gz"):
        (tmp_path / name).write_text("x")
    log = io.StringIO()
    files = [str(tmp_path / f"a-{number}.jsonl.gz") for number in (1, 2)]
    env = {"FILES": "\n".join(files), "RESULT": str(tmp_path / "result"), "FILE": files[0]}
    assert transfer.main(["delete"], env, log) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a-2-1.jsonl.gz", "b-1.jsonl.gz"]
    more = {"NACOS_ADDRESS": "127.0.0.1", "SHA256": "0" * 64, "OVERWRITE": "true"}
    assert transfer.main(["restore"], {**env, **more}, log) == 1
    assert log.getvalue() == f"there is no file {tmp_path / 'a-1.jsonl.gz'} in the volume\n"


def test_who_signs_in() -> None:
    api = transfer.api_from({"NACOS_ADDRESS": "nacos.default.svc"})
    assert (api.addresses, api.third, api.identity, api.login) == (("nacos.default.svc",), False, None, None)
    env = {"IDENTITY_KEY": "k", "IDENTITY_VALUE": "v", "ADMIN_PASSWORD": "p", "NACOS_MAJOR": "3"}
    api = transfer.api_from({"NACOS_ADDRESS": "a", **env})
    assert api.third
    assert api.identity is not None
    assert api.login is not None
    assert (api.identity.key, api.identity.value, api.login.username) == ("k", "v", "nacos")
    named = transfer.api_from({"NACOS_ADDRESS": "a", **env, "ADMIN_USERNAME": "root"})
    assert named.login is not None
    assert named.login.username == "root"
