from __future__ import annotations

import subprocess
from typing import Any

import pytest

from tools import real_packages


class Machine:
    """A machine without the packages; what it was asked to run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, root: bool, programs: set[str], works: bool = True) -> None:
        self.commands: list[list[str]] = []
        self.installed = False
        self._works = works
        monkeypatch.setattr(real_packages.os, "geteuid", lambda: 0 if root else 1000)
        monkeypatch.setattr(real_packages.shutil, "which", lambda name, **_: name if name in programs else None)
        monkeypatch.setattr(real_packages.subprocess, "run", self._run)
        monkeypatch.setattr(real_packages, "missing", lambda: [] if self.installed else ["postgresql"])

    def _run(self, command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        self.commands.append(command)
        self.installed = self.installed or (self._works and "install" in command)
        return subprocess.CompletedProcess(command, 0 if self._works else 100, "", "no network")


def test_root_installs_and_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    machine = Machine(monkeypatch, root=True, programs={"apt-get"})
    assert real_packages.main() == 0
    assert [command[1] for command in machine.commands] == ["update", "install"]
    assert machine.commands[-1][-1] == "postgresql"
    assert "installing postgresql" in capsys.readouterr().out


def test_a_user_with_sudo_installs(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, root=False, programs={"apt-get", "sudo"})
    assert real_packages.main() == 0
    assert machine.commands[-1][:2] == ["sudo", "-n"]


@pytest.mark.parametrize(
    ("root", "programs"), [(False, {"apt-get"}), (True, set()), (False, set())], ids=["no sudo", "no apt", "neither"]
)
def test_a_machine_without_rights_or_apt_gets_advice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], root: bool, programs: set[str]
) -> None:
    Machine(monkeypatch, root=root, programs=programs)
    assert real_packages.main() == 0
    assert "apt-get install postgresql" in capsys.readouterr().out


def test_an_installation_that_fails_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Machine(monkeypatch, root=True, programs={"apt-get"}, works=False)
    assert real_packages.main() == 0
    output = capsys.readouterr().out
    assert "no network" in output
    assert "skip" in output
