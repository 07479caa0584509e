"""The file behind `--merge-kubeconfig`: which one it is, how it is written, and when it is left alone."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest
import yaml

from konverge.cli import user_kubeconfig as module
from konverge.cli.cluster_folders import state_root
from konverge.cli.exit import CommandFailed
from konverge.cli.user_kubeconfig import merge, unmerge, user_kubeconfig

ENTRIES = {"clusters": [{"cluster": {"server": "https://x"}}], "users": [{"user": {"token": "t"}}]}
NAME = "konverge-dev"


def current(path: Path) -> str:
    return str(yaml.safe_load(path.read_text()).get("current-context") or "")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    return tmp_path / "config"


@pytest.mark.spec("O-22")
def test_which_file_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    first, second = tmp_path / "first", tmp_path / "second"
    assert user_kubeconfig({}) == tmp_path / ".kube" / "config"
    listed = {"KUBECONFIG": f":{first}:{second}"}
    assert user_kubeconfig(listed) == first
    second.touch()
    assert user_kubeconfig(listed) == second


@pytest.mark.spec("O-22")
def test_a_new_file_is_for_its_user_alone_and_has_a_current_context(config: Path) -> None:
    merge(config, NAME, ENTRIES, switch=False)
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    assert current(config) == NAME
    assert unmerge(config, NAME)
    assert not unmerge(config, NAME), "it is not there any more"
    assert [path.name for path in config.parent.iterdir()] == ["config"], "neither a lock nor a copy is left"


@pytest.mark.spec("O-22")
def test_mode_and_link_stay(config: Path, tmp_path: Path) -> None:
    target = tmp_path / "dotfiles" / "kube"
    target.parent.mkdir()
    target.write_text("current-context: work\n")
    target.chmod(0o640)
    config.symlink_to(target)
    merge(config, NAME, ENTRIES, switch=False)
    assert config.is_symlink()
    assert NAME in target.read_text()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert current(config) == "work"


@pytest.mark.spec("O-22")
def test_a_current_context_of_another_file_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("kind: Config\n")
    second.write_text("current-context: work\n")
    monkeypatch.setenv("KUBECONFIG", f"{first}:{second}")
    merge(first, NAME, ENTRIES, switch=False)
    assert current(first) == ""
    merge(first, NAME, ENTRIES, switch=True)
    assert current(first) == NAME


@pytest.mark.parametrize("content", [b"a: [", b"\xff\xfe", b"clusters: 5\n"])
@pytest.mark.spec("O-22")
def test_a_file_that_is_no_kubeconfig_is_left_alone(config: Path, content: bytes) -> None:
    config.write_bytes(content)
    for edit in (lambda: merge(config, NAME, ENTRIES, switch=True), lambda: unmerge(config, NAME)):
        with pytest.raises(CommandFailed, match="was left as it is"):
            edit()
    assert config.read_bytes() == content
    assert [path.name for path in config.parent.iterdir()] == ["config"]


@pytest.mark.spec("O-22")
def test_the_lock_of_kubectl_is_respected(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOCKED_FOR", 0.0)
    lock = config.with_name("config.lock")
    lock.touch()
    with pytest.raises(CommandFailed, match=r"config\.lock"):
        merge(config, NAME, ENTRIES, switch=False)
    assert lock.exists()
    assert not config.exists()


@pytest.mark.spec("O-22")
def test_a_read_only_file_is_left_alone(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config.write_text("kind: Config\n")
    config.chmod(0o400)
    # For the administrator every file can be written.
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK or bool(Path(path).stat().st_mode & 0o200))
    with pytest.raises(CommandFailed, match="read-only"):
        merge(config, NAME, ENTRIES, switch=False)
    assert config.read_text() == "kind: Config\n"
    assert [path.name for path in config.parent.iterdir()] == ["config"]


@pytest.mark.spec("O-22")
@pytest.mark.parametrize("number", [errno.EBUSY, errno.EXDEV])
def test_a_file_that_is_mounted_is_written_in_place(config: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    config.write_text("kind: Config\n" + "# much\n" * 1000)
    inode = config.stat().st_ino

    def mounted(path: Path, target: Path) -> None:
        raise OSError(number, "mounted")

    monkeypatch.setattr(Path, "replace", mounted)
    merge(config, NAME, ENTRIES, switch=False)
    assert current(config) == NAME
    unmerge(config, NAME)
    assert current(config) == ""
    assert config.stat().st_ino == inode
    assert [path.name for path in config.parent.iterdir()] == ["config"]


def test_a_full_disk_leaves_the_file_as_it_is(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config.write_text("kind: Config\n")

    def full(path: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="full"):
        merge(config, NAME, ENTRIES, switch=False)
    assert config.read_text() == "kind: Config\n"
    assert [path.name for path in config.parent.iterdir()] == ["config"]


def test_a_user_without_a_home_is_asked_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", home)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    with pytest.raises(OSError, match="set HOME"):
        user_kubeconfig({})
    with pytest.raises(OSError, match="XDG_STATE_HOME"):
        state_root()
