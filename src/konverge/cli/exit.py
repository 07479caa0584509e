"""How a command ends when it does not end well: exceptions with a text for people and an exit code.

0 is fine, 1 is failed, 2 is used wrongly. `boundary.py` prints the text as one line; nothing else in this package
prints errors. `explain` makes such a line of what other layers raise.
"""

from __future__ import annotations

from socket import gaierror

FAILED = 1
USAGE = 2


class CommandFailed(Exception):
    """It did not work; the text says what to do. `details` are lines to print before it: a user's own traceback."""

    code = FAILED

    def __init__(self, text: str, *, details: str = "") -> None:
        super().__init__(text)
        self.details = details


class UsageError(CommandFailed):
    """The command was called with something that cannot be meant; the text says what would be."""

    code = USAGE


def explain(error: BaseException, program: str = "konverge") -> tuple[str, int]:
    """One line and an exit code for anything that a command may raise."""
    error = innermost(error)
    code = error.code if isinstance(error, CommandFailed) else FAILED
    text = " ".join(_text(error).split())
    if not isinstance(error, CommandFailed) and not _meant_for_people(error):
        text = f"{type(error).__name__}: {text} (a defect? `{program} --debug …` shows where)"
    return text, code


def _text(error: BaseException) -> str:
    """What an error says. Those of the operating system know what is wrong, but not what to do."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    if error.filename is not None:
        return f"{error.filename}: {error.strerror}; check the path, and that you may read and write there"
    if isinstance(error, gaierror):
        return f"{error.strerror}; check the name of the host"
    return error.strerror


def innermost(error: BaseException) -> BaseException:
    """What went wrong first, of a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _meant_for_people(error: BaseException) -> bool:
    """Errors of our own layers say what to do; so do those of the operating system. Others are surprises."""
    return type(error).__module__.startswith("konverge.") or isinstance(error, OSError)
