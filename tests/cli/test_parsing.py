"""Messages about arguments: the value and the nearest known word, never the name of a function."""

from __future__ import annotations

import argparse

import pytest

from konverge.cli.main import main, parser
from konverge.cli.parsing import Parser

pytestmark = pytest.mark.spec("O-05")


def message(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    assert ended.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("doctr",), "konverge: error: argument COMMAND: there is no command 'doctr'; did you mean doctor?"),
        (("xyz",), "there is no command 'xyz'; use one of up, "),
        (("store", "chek"), "konverge store: error: argument ACTION: there is no command 'chek'; did you mean check?"),
        (("crd", "webapp", "--output", "jsn"), "argument -o/--output: there is no value 'jsn'; did you mean json?"),
        (("demo", "webap"), "there is no value 'webap'; did you mean webapp?"),
        (("up", "--nodez", "3"), "konverge up: error: there is no option --nodez; did you mean --nodes?"),
        (("run", "webapp", "--leader-elct=1"), "konverge run: error: there is no option --leader-elct; did you mean"),
        (("up", "now"), "konverge up: error: too many arguments: now"),
        (("up", "--nodes", "abc"), "argument --nodes: 'abc' must be a whole number between 0 and 5000"),
        (("manifests", "webapp", "--replicas", "-1"), "argument --replicas: '-1' must be a whole number"),
    ],
)
def test_the_message_says_what_would_be_right(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], text: str
) -> None:
    assert text in message(capsys, *arguments)


def test_no_reader_of_values_is_ever_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever a function raises that reads a value."""
    made = Parser()
    made.add_argument("--size", type=int)
    made.add_argument("--shape", type=lambda text: {}[text])
    with pytest.raises(SystemExit):
        made.parse_args(["--size", "abc"])
    assert capsys.readouterr().err.splitlines()[-1].endswith("argument --size: 'abc' is not a value for it")


def test_every_option_refuses_what_it_cannot_read_with_a_message_of_its_own() -> None:
    commands = next(action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    read = [
        (command, action)
        for command in commands.choices.values()
        for action in command._actions
        if getattr(action.type, "__name__", "Path") != "Path" and action.option_strings
    ]
    assert len(read) > 10
    for command, action in read:
        with pytest.raises(argparse.ArgumentError, match=r"'\?!' (is not|must be) (?!a value for it)"):
            command._get_value(action, "?!")
