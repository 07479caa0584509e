"""The argument parser of every command: messages that say what would be right.

argparse names the function that reads a value ("invalid _count value") and lists all choices. Here a message names the
value, and the nearest word that is known. An option that does not exist is reported by the command that lacks it.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from konverge.suggestions import did_you_mean


class Parser(argparse.ArgumentParser):
    """Also the class of the parsers of its commands."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.set_defaults(parser=self)

    def _get_value(self, action: argparse.Action, text: str) -> Any:
        try:
            return super()._get_value(action, text)
        except argparse.ArgumentError as error:
            if isinstance(error.__context__, argparse.ArgumentTypeError):
                raise
            raise argparse.ArgumentError(action, f"{text!r} is not a value for it") from None

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        choices = action.choices
        if choices is None or value in choices:
            return
        known = [str(choice) for choice in choices]
        what = "command" if isinstance(action, argparse._SubParsersAction) else "value"
        near = did_you_mean(str(value), known) or f"; use one of {', '.join(known)}"
        raise argparse.ArgumentError(action, f"there is no {what} {str(value)!r}{near}")

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """End with the message that these arguments are not known."""
        first = unknown[0].partition("=")[0]
        options = [option for action in self._actions for option in action.option_strings]
        near = did_you_mean(first, options) if first.startswith("-") else ""
        self.error(f"{'there is no option' if first.startswith('-') else 'too many arguments:'} {first}{near}")


def parse(parser: Parser, argv: Sequence[str] | None) -> argparse.Namespace:
    """What was typed. Ends the program with a message about what cannot be meant."""
    arguments, unknown = parser.parse_known_args(argv)
    if unknown:
        arguments.parser.refuse(unknown)
    return arguments
