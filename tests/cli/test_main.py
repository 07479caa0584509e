"""The command as a whole: help, exit codes, one-line errors, no colours where there is no terminal."""

from __future__ import annotations

import argparse
import io
import itertools
import os
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from konverge.cli import main, manifests
from konverge.cli.exit import CommandFailed, explain
from konverge.cli.terminal import Line, Paint, Screen, cut, printable

KONVERGE = [sys.executable, "-m", "konverge.cli.main"]


def commands() -> dict[str, argparse.ArgumentParser]:
    subparsers = next(action for action in main.parser()._actions if isinstance(action, argparse._SubParsersAction))
    return dict(subparsers.choices)


@pytest.mark.parametrize("name", list(commands()))
def test_the_help_of_each_command_ends_with_an_example_that_is_one(name: str) -> None:
    parser = commands()[name]
    assert parser.epilog is not None
    assert parser.epilog.startswith("example")
    assert f"konverge {name}" in parser.epilog


def test_every_example_of_the_help_can_be_parsed() -> None:
    for parser in commands().values():
        ours = [line for line in (parser.epilog or "").splitlines() if "konverge " in line]
        assert ours
        for line in ours:
            words = shlex.shlex(line[line.index("konverge ") :], posix=True, punctuation_chars=True)
            words.whitespace_split = True
            arguments = [*itertools.takewhile(lambda word: not {*word} <= {*"();<>|&"}, words)]
            main.parser().parse_args(arguments[1:])


def test_the_help_is_quick_because_it_imports_no_server_and_no_runtime() -> None:
    code = "import sys; from konverge.cli.main import parser; parser(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = ("konverge.apiserver", "konverge.runtime", "konverge.sim", "konverge.client", "msgspec", "yaml", "asyncio")
    assert [name for name in heavy if name in loaded] == []


@pytest.mark.parametrize("name", list(commands()))
def test_a_command_that_is_typed_is_parsed_without_the_others(name: str) -> None:
    def helps(parser: argparse.ArgumentParser) -> str:
        made = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
        return made.choices[name].format_help()

    assert helps(main.parser(name)) == helps(main.parser())


def test_a_typed_command_loads_no_other_and_one_that_is_none_is_sought_among_all(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = "import sys; from konverge.cli.main import parser; parser('up'); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "konverge.cli.up" in loaded
    assert not {"konverge.cli.check", "konverge.cli.store", "konverge.cli.sim"} & {*loaded}
    with pytest.raises(SystemExit):
        main.main(["dow"])
    assert "did you mean down?" in capsys.readouterr().err


def test_without_a_command_the_help_is_shown_and_it_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main([]) == 2
    assert "konverge up" in capsys.readouterr().err
    assert main.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("konverge ")


def test_an_error_is_one_line_that_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "nowhere"
    assert main.main(["run", "webapp", "--kubeconfig", str(missing)]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == f"konverge run: the kubeconfig {missing} does not exist\n"


def test_a_defect_is_said_to_be_one_and_shown_when_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(arguments: argparse.Namespace) -> int:
        raise ExceptionGroup("tasks", [ZeroDivisionError("division\nby zero")])

    monkeypatch.setattr(manifests, "print_definitions", broken)
    assert main.main(["crd", "webapp"]) == 1
    message = capsys.readouterr().err
    assert message.startswith("konverge crd: ZeroDivisionError: division by zero (a defect? ")
    assert len(message.splitlines()) == 1
    with pytest.raises(ExceptionGroup):
        main.main(["--debug", "crd", "webapp"])


def test_our_own_errors_speak_for_themselves() -> None:
    assert explain(CommandFailed("do that")) == ("do that", 1)
    assert explain(ExceptionGroup("two", [CommandFailed("do that"), ValueError()])) == ("do that", 1)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (PermissionError(13, "denied", "file"), "file: denied; check the path, and that you may read and write there"),
        (
            OSError(98, "cannot listen on a:1: in use; choose another port"),
            "cannot listen on a:1: in use; choose another port",
        ),
        (socket.gaierror(-2, "Name or service not known"), "Name or service not known; check the name of the host"),
        (TimeoutError("too late"), "too late"),
    ],
)
def test_errors_of_the_system_get_what_to_do(error: OSError, text: str) -> None:
    assert explain(error) == (text, 1)


def test_a_configuration_that_cannot_be_used_is_named_before_anything_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.yaml").write_text("workers: none")
    assert main.main(["run", "webapp", "--config", str(tmp_path / "config.yaml")]) == 1
    assert "workers must be a whole number" in capsys.readouterr().err


def test_an_interrupt_is_quiet(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(arguments: argparse.Namespace) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(manifests, "print_definitions", interrupted)
    assert main.main(["crd", "webapp"]) == 130
    assert capsys.readouterr().err == ""


def test_a_reader_who_goes_away_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        done = subprocess.run([*KONVERGE, "manifests", "webapp"], stdout=pipe, stderr=subprocess.PIPE, text=True)
    assert done.stderr == ""


def test_an_operator_that_there_is_not_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["crd", "shop"]) == 2
    assert "known operators: nacos, wukong, webapp" in capsys.readouterr().err
    assert main.main(["crd", "webap"]) == 2
    assert "there is no operator 'webap'; did you mean webapp?" in capsys.readouterr().err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_are_for_terminals_and_for_those_who_want_them() -> None:
    assert Paint.on(Terminal(), {})("x", "ok") == "\x1b[32mx\x1b[0m"
    assert Paint.on(io.StringIO(), {})("x", "ok") == "x"
    assert Paint.on(Terminal(), {"NO_COLOR": "1"})("x", "ok") == "x"
    assert Paint.on(Terminal(), {"TERM": "dumb"})("x", "ok") == "x"


def test_a_screen_is_drawn_from_the_top_and_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINES", "4")
    monkeypatch.setenv("COLUMNS", "6")
    stream = Terminal()
    with Screen(stream, Paint(colours=True)) as screen:
        screen.draw([Line("abcdefgh", "ok"), Line("x", ""), Line("y", ""), Line("too much", "")])
    enter, drawn = stream.getvalue().split("\x1b[H")
    drawn, leave = drawn.split("\x1b[J")
    assert (enter, leave) == ("\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l")
    assert drawn == "\x1b[32mabcde\x1b[0m\x1b[K\r\nx\x1b[K\r\ny\x1b[K\r\n"


def test_a_terminal_obeys_no_text_of_others() -> None:
    assert printable("a\x1b]0;title\x07b\tc") == "a?]0;title?b c"
    assert cut("a\x1b[2J", 10) == "a?[2J"
    assert (cut("名字长", 4), cut("名字长", 5), cut("abc", 2)) == ("名字", "名字", "ab")
