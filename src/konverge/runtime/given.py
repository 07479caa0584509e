"""Options that remember which of them were given.

Code has the last word over the environment and files, also where it gives a value that happens to be the default. So an
options class must know what was given, and not only what differs.
"""

from __future__ import annotations

from typing import Any, Self


class Options:
    """The base of options classes, which are dataclasses with a default for every field.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, slots=True, kw_only=True)
    ... class Paint(Options):
    ...     color: str = "white"
    ...     coats: int = 1
    >>> Paint(coats=1).over(Paint(color="red", coats=3))
    Paint(color='red', coats=1)

    `dataclasses.replace` gives every option.
    """

    __slots__ = ("given",)

    given: frozenset[str]
    """The names of the options that were given to the constructor."""

    def __new__(cls, **options: Any) -> Self:
        self = object.__new__(cls)
        object.__setattr__(self, "given", frozenset(options))
        return self

    def over(self, base: Self) -> Self:
        """These options where they were given, else those of `base`; all that either gave counts as given."""
        chosen = {name: getattr(self, name) for name in self.given}
        return type(self)(**{name: getattr(base, name) for name in base.given} | chosen)
