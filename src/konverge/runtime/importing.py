"""The import of a module that declares an operator must not start it: a tool imports it to look at the declarations.

The tool marks the time of the import; a manager that is started within it refuses. The exception is not an `Exception`,
so that a `try` around the start in the user's module does not hide it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_importing: ContextVar[bool] = ContextVar("importing", default=False)


class StartedWhileImported(BaseException):
    """A module starts its operator when it is imported."""


@contextmanager
def importing() -> Iterator[None]:
    """Inside the block no manager can be started."""
    token = _importing.set(True)
    try:
        yield
    finally:
        _importing.reset(token)


def refuse_while_loading(name: str) -> None:
    """Raises StartedWhileImported inside of `importing`."""
    if _importing.get():
        raise StartedWhileImported(f"the operator {name} is started while its module is imported")
