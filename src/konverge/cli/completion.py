"""`konverge completion`: a script for the shell, made from the parser itself, so that it cannot go out of date."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from konverge.cli.arguments import OPERATOR
from konverge.cli.arguments import command as new_command

SHELLS = ("bash", "zsh", "fish")


def add(commands: Any) -> None:
    about = "print the completion script of a shell"
    parser = new_command(
        commands,
        "completion",
        about,
        "source <(konverge completion bash)",
        "konverge completion fish > ~/.config/fish/completions/konverge.fish",
    )
    parser.add_argument("shell", choices=SHELLS, help="the shell")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from konverge.cli.main import parser

    commands = described(parser())
    print({"bash": bash, "zsh": zsh, "fish": fish}[arguments.shell](commands))
    return 0


@dataclass(frozen=True, slots=True)
class Described:
    """What there is to complete of one command."""

    name: str
    about: str
    options: tuple[str, ...]
    """Options, and the choices of what stands without one."""
    values: dict[str, tuple[str, ...]]
    """Option -> its choices."""
    files: tuple[str, ...]
    """Options whose value is a file or a folder."""
    operators: tuple[str, ...] = ()
    """What takes an operator: options, and an empty text for what stands without one. A file of Python will do too."""


def described(parser: argparse.ArgumentParser) -> list[Described]:
    """The commands of a parser; the first, without a name, is what may stand before one."""
    commands = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    about = {action.dest: action.help or "" for action in commands._choices_actions}
    entries = [_describe(name, about.get(name, ""), sub) for name, sub in commands.choices.items()]
    return [_describe("", "", parser), *entries]


def _describe(name: str, about: str, parser: argparse.ArgumentParser) -> Described:
    from konverge.operators.loading import known_names

    options: list[str] = []
    values: dict[str, tuple[str, ...]] = {}
    files: list[str] = []
    operators: list[str] = []
    for action in parser._actions:
        choices = tuple(map(str, action.choices or ()))
        if action.metavar == OPERATOR or "--operators" in action.option_strings:
            choices = (*known_names(), *(() if action.metavar == OPERATOR else ("all", "none")))
            operators += action.option_strings or [""]
        if not action.option_strings:
            options += choices
            continue
        options += action.option_strings
        for option in action.option_strings:
            if choices:
                values[option] = choices
            elif getattr(action.type, "__name__", "") == "Path":
                files.append(option)
    return Described(name, about, tuple(options), values, tuple(files), tuple(operators))


def bash(commands: list[Described]) -> str:
    """Completes by the command that was typed and the word before the cursor."""
    names = "|".join(command.name for command in commands if command.name)
    return "\n".join(
        [
            "# konverge completion for bash: source <(konverge completion bash)",
            "_konverge() {",
            '  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" command="" word',
            '  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
            f'    case "$word" in {names}) command="$word"; break;; esac',
            "  done",
            '  case "$command $prev" in',
            *_bash_values(commands),
            "  esac",
            '  case "$command" in',
            *(
                f'    "{command.name}") {_offer(command.options, python="" in command.operators)};;'
                for command in commands
            ),
            "  esac",
            "}",
            "complete -F _konverge konverge",
        ]
    )


def _bash_values(commands: list[Described]) -> Iterator[str]:
    for command in commands:
        for option, choices in command.values.items():
            yield f'    "{command.name} {option}") {_offer(choices, python=option in command.operators)}; return;;'
        for option in command.files:
            yield f'    "{command.name} {option}") COMPREPLY=($(compgen -f -- "$cur")); return;;'


def _offer(words: tuple[str, ...], *, python: bool) -> str:
    """Offer words, and files of Python where one may be named."""
    files = """ $(compgen -f -X '!*.py' -- "$cur")""" if python else ""
    return f'COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$cur"){files})'


def zsh(commands: list[Described]) -> str:
    """zsh runs completions of bash; the script says so and goes on."""
    return "\n".join(
        [
            "#compdef konverge",
            "# konverge completion for zsh: source <(konverge completion zsh)",
            "autoload -U +X bashcompinit && bashcompinit",
            bash(commands),
        ]
    )


def fish(commands: list[Described]) -> str:
    names = " ".join(command.name for command in commands if command.name)
    lines = ["# konverge completion for fish", "complete -c konverge -f"]
    for command in commands:
        if not command.name:
            lines.append(
                f"complete -c konverge -n 'not __fish_seen_subcommand_from {names}' -a '{' '.join(command.options)}'"
            )
            continue
        seen = f"__fish_seen_subcommand_from {command.name}"
        about = _quoted(command.about)
        lines.append(f"complete -c konverge -n 'not __fish_seen_subcommand_from {names}' -a {command.name} -d {about}")
        lines.append(f"complete -c konverge -n '{seen}' -a '{' '.join(command.options)}'")
        if command.operators:
            lines.append(f"complete -c konverge -n '{seen}' -a '(__fish_complete_suffix .py)'")
        for option, choices in command.values.items():
            if option.startswith("--"):
                lines.append(f"complete -c konverge -n '{seen}' -l {option[2:]} -x -a '{' '.join(choices)}'")
        lines += [f"complete -c konverge -n '{seen}' -l {option[2:]} -r -F" for option in command.files]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
