"""Where clusters come from: files in a folder and Secrets with a label, and what a Secret must not be able to do."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge.cache.informer import Informer
from konverge.client import Client, MergePatch
from konverge.client.errors import ConfigError
from konverge.objects.kinds.core_v1 import Secret
from konverge.objects.meta import ObjectMeta
from konverge.runtime.clusters import Connection, FixedClusters, KubeconfigFolder, KubeconfigSecrets, Unusable
from konverge.runtime.clusters.confined import MAX_BYTES, confined_config
from konverge.runtime.clusters.providers import Known
from konverge.runtime.clusters.secrets import LABEL
from konverge.runtime.rbac import Permission
from tests.runtime.objects import SPACE
from tests.runtime.test_engine import settle

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-84")]


def kubeconfig(server: str = "https://a:6443", *, cluster: Any = (), **user: Any) -> str:
    return yaml.safe_dump({
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": server, **dict(cluster)}}],
        "users": [{"name": "u", "user": user or {"token": "t0ken"}}],
    })  # fmt: skip


class Following:
    """What a provider says, as it says it."""

    def __init__(self, provider: Any, home: Any) -> None:
        self.said: list[Known] = []
        self._stream: AsyncIterator[Known] = provider.clusters(home)

    async def run(self) -> None:
        async for known in self._stream:
            self.said.append(known)

    @property
    def last(self) -> Known:
        return self.said[-1]

    def usable(self) -> list[str]:
        return sorted(name for name, entry in self.last.items() if isinstance(entry, Connection))

    def reason(self, name: str) -> str:
        entry = self.last[name]
        assert isinstance(entry, Unusable)
        return entry.reason

    def fingerprint(self, name: str) -> Any:
        entry = self.last[name]
        assert isinstance(entry, Connection)
        return entry.fingerprint


# ------------------------------------------------------------------ files


def write(file: Path, text: str, time: int) -> None:
    file.write_text(text)
    os.utime(file, ns=(time, time))


async def test_files_are_added_changed_broken_and_removed(tmp_path: Path) -> None:
    write(tmp_path / "east.yaml", kubeconfig(), 1)
    write(tmp_path / ".hidden", "no", 1)
    (tmp_path / "..data").mkdir()
    following = Following(KubeconfigFolder(tmp_path, period=5), None)
    task = asyncio.create_task(following.run())
    await settle()
    assert list(following.last) == ["east"]
    before = following.fingerprint("east")
    await settle(60)
    assert len(following.said) == 1  # nothing changed
    write(tmp_path / "west", kubeconfig(), 2)
    write(tmp_path / "east.yaml", kubeconfig("https://b:6443"), 2)
    await settle(6)
    assert following.usable() == ["east", "west"]
    assert following.fingerprint("east") != before
    write(tmp_path / "east.yaml", "{", 3)
    await settle(6)
    assert following.usable() == ["west"]
    assert "east.yaml is not YAML" in following.reason("east")
    (tmp_path / "east.yaml").unlink()
    write(tmp_path / "west.yaml", kubeconfig(), 4)
    await settle(6)
    assert list(following.last) == ["west"]
    assert "several files" in following.reason("west")
    (tmp_path / "west").unlink()
    (tmp_path / "west.yaml").unlink()
    await settle(6)
    assert following.last == {}
    task.cancel()
    await asyncio.wait({task})


async def test_a_file_may_have_just_so_many_bytes(tmp_path: Path) -> None:
    text = kubeconfig()
    write(tmp_path / "fits", text + "#" * (MAX_BYTES - len(text)), 1)
    write(tmp_path / "large", text + "#" * (MAX_BYTES + 1 - len(text)), 1)
    following = Following(KubeconfigFolder(tmp_path, period=5), None)
    task = asyncio.create_task(following.run())
    await settle()
    assert following.usable() == ["fits"]
    assert following.reason("large") == f"{tmp_path / 'large'} is larger than {MAX_BYTES} bytes: not a kubeconfig"
    task.cancel()
    await asyncio.wait({task})


async def test_a_folder_that_cannot_be_read_is_an_error_not_an_empty_folder(tmp_path: Path) -> None:
    following = Following(KubeconfigFolder(tmp_path / "missing"), None)
    with pytest.raises(FileNotFoundError):
        await following.run()
    assert following.said == []


async def test_a_file_is_connected_with_its_content(tmp_path: Path) -> None:
    write(tmp_path / "east.yaml", kubeconfig("http://127.0.0.1:1"), 1)
    for provider in (KubeconfigFolder(tmp_path), FixedClusters({"east": tmp_path / "east.yaml"})):
        following = Following(provider, None)
        task = asyncio.create_task(following.run())
        await settle()
        entry = following.last["east"]
        assert isinstance(entry, Connection)
        async with entry.connect() as client:
            assert "http://127.0.0.1:1" in client.server
        task.cancel()
        await asyncio.wait({task})


# ------------------------------------------------------------------ Secrets


def secret(name: str, text: str, *, key: str = "kubeconfig", labelled: bool = True) -> Secret:
    label, value = LABEL.split("=")
    meta = ObjectMeta(name=name, namespace=SPACE, labels={label: value} if labelled else {})
    return Secret(metadata=meta, data={key: base64.b64encode(text.encode()).decode()})


async def test_secrets_are_added_edited_broken_and_removed(client: Client) -> None:
    await client.create(secret("east", kubeconfig()))
    await client.create(secret("other", kubeconfig(), labelled=False))
    following = Following(KubeconfigSecrets(SPACE), client)
    task = asyncio.create_task(following.run())
    await settle()
    assert list(following.last) == ["east"]
    before = following.fingerprint("east")
    await client.patch(Secret, "east", MergePatch({"metadata": {"annotations": {"note": "x"}}}), SPACE)
    await settle()
    assert following.fingerprint("east") == before  # the kubeconfig is the same
    edited = base64.b64encode(kubeconfig("https://b:6443").encode()).decode()
    await client.patch(Secret, "east", MergePatch({"data": {"kubeconfig": edited}}), SPACE)
    await client.create(secret("west", kubeconfig(), key="value"))
    await settle()
    assert following.fingerprint("east") != before
    assert following.reason("west") == "Secret default/west has no key 'kubeconfig'"
    entry = following.last["west"]
    assert isinstance(entry, Unusable)
    assert entry.about is not None
    assert (entry.about.kind, entry.about.metadata.name) == ("Secret", "west")
    await client.delete(Secret, "east", SPACE)
    await settle()
    assert list(following.last) == ["west"]
    task.cancel()
    await asyncio.wait({task})


def test_the_right_to_read_secrets_and_to_report_them_is_asked_for() -> None:
    assert KubeconfigSecrets("fleet").permissions() == [
        *(Permission("", "secrets", verb, "fleet") for verb in ("get", "list", "watch")),
        *(Permission("", "events", verb, "fleet") for verb in ("create", "patch")),
    ]


# ------------------------------------------------------------------ what a Secret must not do

EXEC = {"exec": {"command": "touch", "args": ["/tmp/owned"], "apiVersion": "client.authentication.k8s.io/v1"}}


@pytest.mark.parametrize(
    "text",
    [
        kubeconfig(**EXEC),
        kubeconfig(token="t0ken", **EXEC),
        kubeconfig(**{"auth-provider": {"name": "gcp", "config": {"cmd-path": "touch"}}}),
        kubeconfig(tokenFile="/var/run/secrets/kubernetes.io/serviceaccount/token"),
        kubeconfig(**{"client-certificate": "/etc/passwd", "client-key-data": "eA=="}),
        kubeconfig(**{"client-key": "/etc/passwd", "client-certificate-data": "eA=="}),
        kubeconfig(cluster={"certificate-authority": "/etc/passwd"}),
    ],
)
def test_programs_and_files_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="refused"):
        confined_config(text.encode(), "Secret a")


def test_one_that_is_not_used_is_refused_as_well() -> None:
    document = yaml.safe_load(kubeconfig())
    document["users"].append({"name": "spare", "user": EXEC})
    with pytest.raises(ConfigError, match=r"user 'spare' has exec"):
        confined_config(yaml.safe_dump(document).encode(), "Secret a")


def test_they_can_be_allowed(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("t")
    assert confined_config(kubeconfig(tokenFile=str(token)).encode(), "s", allow_files=True).server == "https://a:6443"
    text = kubeconfig(exec={"command": "x", "apiVersion": "client.authentication.k8s.io/v1beta1"})
    assert confined_config(text.encode(), "s", allow_exec=True).server == "https://a:6443"
    with pytest.raises(ConfigError, match="run a program"):
        confined_config(text.encode(), "s", allow_files=True)


@pytest.mark.spec("R-104")
def test_yaml_in_a_secret_means_what_it_means_to_kubectl() -> None:
    text = kubeconfig(token="t0ken").replace("t0ken", "12:34")
    current = confined_config(text.encode(), "Secret a").credentials.current()
    assert current is not None
    assert current.authorization == "Bearer 12:34"


@pytest.mark.parametrize("content", [b"token: [hunter2", b"\xff\xfe hunter2", b"a: b: hunter2", b"hunter2", b"[]"])
def test_an_error_quotes_nothing_of_the_content(content: bytes) -> None:
    with pytest.raises(ConfigError) as caught:
        confined_config(content, "Secret a")
    assert "hunter2" not in str(caught.value)
    assert "Secret a" in str(caught.value)


NESTED = "".join(f"l{n + 1}: &l{n + 1} [{', '.join([f'*l{n}'] * 10)}]\n" for n in range(8))
BOMBS = {
    "aliases": ("l0: &l0 hunter2\n" + NESTED, "a YAML alias"),
    "aliases in groups": (kubeconfig().replace("token: t0ken", "as: a\n    as-groups: [&a [hunter2], *a]"), "alias"),
    "merge keys": ("<<: {<<: {hunter2: 1}}", "a YAML merge key"),
    "a long number": ("hunter2: 1" + "1" * 200_000, "no text"),
    "a number of 41 characters": ("hunter2: 0X" + "1" * 39, "a value of 41 characters that is no text"),
    "a number of 40 characters": ("hunter2: 0X" + "1" * 38, "current-context"),
    "a long float": ("hunter2: 1" + "_1" * 200_000 + ".5", "no text"),
    "many parts": ("hunter2: [" + "1," * 100_000 + "]", "more than 50000 parts"),
    "many levels": ("[" * 60 + "hunter2" + "]" * 60, "more than 50 levels"),
    "bool": ("!!bool hunter2", "a YAML tag"),
    "int": ("hunter2: !!int ''", "a YAML tag"),
    "float": ("hunter2: !!float ''", "a YAML tag"),
    "timestamp": ("!!timestamp hunter2", "a YAML tag"),
    "a long time": ("hunter2: 1" + ":1" * 200_000, "current-context"),
    "no such day": ("hunter2: 2024-99-99", "current-context"),
    "a key that is a list": ("[hunter2]: 1", "current-context"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_yaml_that_would_stop_the_process_is_refused(name: str) -> None:
    text, said = BOMBS[name]
    with pytest.raises(ConfigError, match=said) as caught:
        confined_config(text.encode(), "Secret a")
    assert "hunter2" not in str(caught.value)
    assert "Secret a" in str(caught.value)


async def test_one_bad_secret_concerns_no_other(client: Client) -> None:
    for number, (text, _) in enumerate(BOMBS.values()):
        await client.create(secret(f"bad-{number}", text))
    await client.create(secret("east", kubeconfig()))
    following = Following(KubeconfigSecrets(SPACE), client)
    task = asyncio.create_task(following.run())
    await settle()
    assert following.usable() == ["east"]
    assert len(following.last) == 1 + len(BOMBS)
    task.cancel()
    await asyncio.wait({task})


def test_numbers_and_flags_are_read_as_such() -> None:
    text = kubeconfig(cluster={"insecure-skip-tls-verify": True})
    assert confined_config(text.encode(), "Secret a").tls.insecure
    with pytest.raises(ConfigError, match="token must be a str, not int"):
        confined_config(kubeconfig(token=7).encode(), "Secret a")


def test_something_huge_is_refused() -> None:
    with pytest.raises(ConfigError, match="larger than"):
        confined_config(b" " * (MAX_BYTES + 1), "Secret a")


def test_a_file_may_have_a_megabyte(tmp_path: Path) -> None:
    text = kubeconfig() + "\n#"
    (tmp_path / "largest.yaml").write_text(text + "x" * ((1 << 20) - len(text)))
    (tmp_path / "larger.yaml").write_text(text + "x" * ((1 << 20) - len(text) + 1))
    known = KubeconfigFolder(tmp_path)._look()
    assert isinstance(known["largest"], Connection)
    assert known["larger"] == Unusable(f"{tmp_path}/larger.yaml is larger than 1048576 bytes: not a kubeconfig")


def test_a_file_that_goes_while_it_is_read_is_unusable_and_the_others_stay(tmp_path: Path) -> None:
    (tmp_path / "east.yaml").write_text(kubeconfig())
    (tmp_path / "west.yaml").symlink_to(tmp_path / "absent")
    known = KubeconfigFolder(tmp_path)._look()
    assert isinstance(known["east"], Connection)
    assert isinstance(known["west"], Unusable)
    assert "west.yaml cannot be read: No such file" in known["west"].reason


async def test_who_stops_following_secrets_leaves_no_cache_behind(client: Client) -> None:
    clusters = KubeconfigSecrets(SPACE).clusters(client)
    assert await anext(clusters) == {}
    await clusters.aclose()  # type: ignore[attr-defined]
    assert not [task for task in asyncio.all_tasks() if "clusters' Secrets" in task.get_name()]


async def test_a_cache_of_secrets_that_fails_is_an_error_of_the_provider(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not an end without a word: clusters that nobody follows any more would look like clusters that do not change."""
    may_fail = asyncio.Event()

    async def run(self: Informer) -> None:
        self.synced.set()
        await may_fail.wait()
        raise RuntimeError("the cache is broken")

    monkeypatch.setattr(Informer, "run", run)
    clusters = KubeconfigSecrets(SPACE).clusters(client)
    assert await anext(clusters) == {}
    may_fail.set()
    with pytest.raises(RuntimeError, match="the cache is broken"):
        await anext(clusters)
