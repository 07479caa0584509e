"""Token files and exec plugins: fresh when needed, fetched once however many ask."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from konverge.client import Credential, CredentialError, ExecPlugin, ExecSpec, TokenFile
from konverge.client.credentials import Renewing
from konverge.client.exec_plugin import VERSIONS

PLUGIN = """
import json, os, pathlib, sys
count = pathlib.Path(sys.argv[1]); count.write_text(str(int(count.read_text() or 0) + 1))
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
status = {"token": os.environ["PREFIX"] + count.read_text(), **json.loads(sys.argv[2])}
print(json.dumps({"kind": "ExecCredential", "apiVersion": info["apiVersion"], "status": status}))
"""


def plugin(tmp_path: Path, status: str = "{}", version: str = VERSIONS[0], program: str = PLUGIN) -> ExecPlugin:
    (tmp_path / "count").write_text("0")
    arguments = ("-c", program, str(tmp_path / "count"), status)
    env = {"PREFIX": "t"}
    return ExecPlugin(
        ExecSpec(command=sys.executable, api_version=version, args=arguments, env=env, interactive_mode="Never")
    )


@pytest.mark.virtual
async def test_a_token_file_is_read_again_after_its_period(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one\n")
    credentials = TokenFile(path, period=10)
    first = credentials.current()
    assert first.authorization == "Bearer one"
    path.write_text("two")
    assert credentials.current() is first
    await asyncio.sleep(10)
    assert credentials.current().authorization == "Bearer two"


async def test_a_token_file_that_vanishes_leaves_the_last_token(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    credentials = TokenFile(path)
    held = credentials.current()
    path.unlink()
    assert await credentials.renew(held) is held
    with pytest.raises(CredentialError, match="cannot read the token file"):
        TokenFile(path).current()
    path.write_text("")
    with pytest.raises(CredentialError, match="is empty"):
        TokenFile(path).current()


@pytest.mark.parametrize("content", [b"one\ntwo", b"\xff\xfe", "t\u00f6ken".encode()])
def test_a_file_that_holds_no_token(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)
    with pytest.raises(CredentialError, match="holds something else than one token"):
        TokenFile(path).current()


class Failing(Renewing):
    def __init__(self) -> None:
        super().__init__()
        self.tried = 0

    async def _fetch(self) -> Credential:
        self.tried += 1
        await asyncio.sleep(0)
        raise CredentialError(f"try {self.tried} failed")


async def test_many_that_wait_for_a_plugin_fail_together() -> None:
    credentials = Failing()
    results = await asyncio.gather(*(credentials.renew() for _ in range(100)), return_exceptions=True)
    assert (credentials.tried, {str(result) for result in results}) == (1, {"try 1 failed"})
    with pytest.raises(CredentialError, match="try 2 failed"):  # who comes later tries again
        await credentials.renew()


class Counting(Renewing):
    def __init__(self) -> None:
        super().__init__()
        self.fetched = 0

    async def _fetch(self) -> Credential:
        await asyncio.sleep(0)
        self.fetched += 1
        return Credential(f"Bearer {self.fetched}")


async def test_many_that_were_refused_renew_once() -> None:
    credentials = Counting()
    first = await credentials.renew()
    results = await asyncio.gather(*(credentials.renew(first) for _ in range(10)))
    assert credentials.fetched == 2
    assert {result.authorization for result in results} == {"Bearer 2"}


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_plugin_is_run_once_and_again_when_refused(tmp_path: Path, version: str) -> None:
    credentials = plugin(tmp_path, version=version)
    assert credentials.current() is None
    first = await credentials.renew()
    assert first.authorization == "Bearer t1"
    assert credentials.current() is first
    assert (await credentials.renew(first)).authorization == "Bearer t2"


async def test_an_expired_credential_is_not_used(tmp_path: Path) -> None:
    old = plugin(tmp_path, '{"expirationTimestamp": "2001-01-01T00:00:00Z"}')
    await old.renew()
    assert old.current() is None
    new = plugin(tmp_path, '{"expirationTimestamp": "2999-01-01T00:00:00Z"}')
    assert await new.renew() is new.current()


async def test_a_certificate_from_a_plugin(tmp_path: Path) -> None:
    pair = '{"token": "", "clientCertificateData": "C", "clientKeyData": "K"}'
    credential = await plugin(tmp_path, pair).renew()
    assert credential == Credential("", "C", "K")


@pytest.mark.parametrize(
    ("program", "status", "said"),
    [
        ("import sys; sys.exit('not logged in')", "{}", "not logged in"),
        ("print('hello')", "{}", "something other than an ExecCredential"),
        ("print('{}')", "{}", "was asked for"),
        (PLUGIN, '{"token": ""}', "neither a token nor a certificate"),
        (PLUGIN, '{"clientKeyData": "K"}', "a key without its certificate"),
    ],
)
async def test_what_a_plugin_does_wrong(tmp_path: Path, program: str, status: str, said: str) -> None:
    with pytest.raises(CredentialError, match=said):
        await plugin(tmp_path, status, program=program).renew()


async def test_a_plugin_that_is_not_installed() -> None:
    spec = ExecSpec(
        command="no-such-plugin", api_version=VERSIONS[0], install_hint="brew install it", source="user 'u'"
    )
    with pytest.raises(CredentialError, match=r"user 'u'.*is not installed.*\nbrew install it"):
        await ExecPlugin(spec).renew()
