"""Completion scripts, run by the shell where there is one."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from konverge.cli.main import main


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


def test_every_command_is_in_every_script(capsys: pytest.CaptureFixture[str]) -> None:
    for shell in ("bash", "zsh", "fish"):
        text = script(capsys, shell)
        assert all(name in text for name in ("up", "demo", "run", "new", "doctor", "crd", "rbac", "manifests"))


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_shell_reads_its_script(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    program = shutil.which(shell) or pytest.skip(f"no {shell} here")
    done = subprocess.run([program, "-n"], input=script(capsys, shell), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
