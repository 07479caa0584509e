"""Flags as Go programs read them: `--name=value`, `--name value`, `--switch`.

The real programs have hundreds; those without a meaning here are tolerated, so that suites which set them run, and
named in a note, so that users do not expect them to have an effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

_TRUE = {"", "1", "t", "true"}


class FlagError(ValueError):
    """A flag that cannot be understood; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Flag:
    help: str
    switch: bool = False
    """True or false; named alone it means true."""


@dataclass(slots=True)
class Flags:
    """The given flags: every value of each, in order."""

    values: dict[str, list[str]] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)

    def get(self, name: str, default: str = "") -> str:
        """The last value, which is the one that counts."""
        return self.values[name][-1] if name in self.values else default

    def all(self, name: str) -> tuple[str, ...]:
        """The values of a flag that may be given several times, or with commas."""
        return tuple(part for value in self.values.get(name, ()) for part in value.split(",") if part)

    def on(self, name: str, default: bool) -> bool:
        return self.values[name][-1].lower() in _TRUE if name in self.values else default


def parse(arguments: Sequence[str], known: Mapping[str, Flag]) -> Flags:
    flags = Flags()
    for name, value in _pairs(arguments, known):
        if name not in known:
            flags.unknown.append(name)
        flags.values.setdefault(name, []).append(value)
    return flags


def _pairs(arguments: Sequence[str], known: Mapping[str, Flag]) -> Iterator[tuple[str, str]]:
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if not argument.startswith("-") or not argument.strip("-"):
            raise FlagError(f"{argument!r} is not a flag; see --help")
        name, given, value = argument.lstrip("-").partition("=")
        if not given and _takes_next(known.get(name), rest):
            value = rest.pop(0)
        elif not given and name in known and not known[name].switch:
            raise FlagError(f"--{name} needs a value")
        yield name, value


def _takes_next(flag: Flag | None, rest: list[str]) -> bool:
    """An unknown flag takes the next argument if that looks like a value."""
    if not rest or (flag is not None and flag.switch):
        return False
    return flag is not None or not rest[0].startswith("-")


def usage(program: str, about: str, known: Mapping[str, Flag]) -> str:
    """The text of --help. Tools search it for flags, each at the start of its line."""
    width = max(map(len, known))
    lines = [f"      --{name:<{width}}  {flag.help}" for name, flag in known.items()]
    return "\n".join([about, "", f"Usage:\n  {program} [flags]", "", "Flags:", *lines])
