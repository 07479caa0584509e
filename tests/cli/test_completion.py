"""Completion scripts, run by the shell where there is one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from konverge.cli.main import main
from konverge.operators.loading import references


def script(capsys: pytest.CaptureFixture[str], shell: str) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def completed(text: str, *arguments: str) -> list[str]:
    """What bash offers for the last word."""
    typed = " ".join(f"'{argument}'" for argument in ("konverge", *arguments))
    ask = f"{text}\nCOMP_WORDS=({typed}); COMP_CWORD={len(arguments)}; _konverge; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    bash = shutil.which("bash") or pytest.skip("no bash here")
    done = subprocess.run([bash, "--norc", "-c", ask], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("arguments", "offered"),
    [
        (("de",), ["demo"]),
        (("--deb",), ["--debug"]),
        (("run", "we"), ["webapp"]),
        (("up", "--operators", "n"), ["nacos", "none"]),
        (("doctor", "--operator", "wu"), ["wukong"]),
        (("run", "webapp", "--leader-elec"), ["--leader-elect", "--leader-election-namespace"]),
        (("demo", "webapp", "--lang", ""), ["en", "zh"]),
        (("--debug", "demo", "--output", "j"), ["json"]),
        (("completion", ""), ["-h", "--help", "bash", "zsh", "fish"]),
    ],
)
def test_bash_offers_what_the_parser_takes(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], offered: list[str]
) -> None:
    assert completed(script(capsys, "bash"), *arguments) == offered


@pytest.mark.spec("O-01")
def test_installed_operators_and_files_of_python_are_offered(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = references.Known("keeper", "keeper:manager")
    monkeypatch.setattr(references, "_installed", lambda: {"keeper": [known]})
    monkeypatch.chdir(tmp_path)
    for name in ("keep_it.py", "keep_it.txt"):
        (tmp_path / name).write_text("")
    text = script(capsys, "bash")
    assert completed(text, "run", "keep") == completed(text, "doctor", "--operator", "keep") == ["keeper", "keep_it.py"]
    assert "keeper" in script(capsys, "fish")


def test_every_command_is_in_every_script(capsys: pytest.CaptureFixture[str]) -> None:
    for shell in ("bash", "zsh", "fish"):
        text = script(capsys, shell)
        assert all(name in text for name in ("up", "demo", "run", "new", "doctor", "crd", "rbac", "manifests"))


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_shell_reads_its_script(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    program = shutil.which(shell) or pytest.skip(f"no {shell} here")
    done = subprocess.run([program, "-n"], input=script(capsys, shell), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
