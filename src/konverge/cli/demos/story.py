"""A demonstration: headings, facts and what the operator logged, in order; translated, or as data."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from konverge.cli.terminal import Paint
from konverge.observe import logs

Words = Mapping[str, str]
"""What is said -> how it is said in another language; `{}` stands for the values."""
Phrases = Mapping[str, Callable[..., tuple[Any, ...]]]
"""A message of the operator -> a function from its arguments to a text of the story and its values."""


@dataclass
class Story:
    """What happened, as it is noted."""

    words: Mapping[str, Words]
    """Language -> translations. What is missing is shown in English."""
    fine: bool = True
    _told: list[tuple[str, str, tuple[Any, ...]]] = field(default_factory=list)

    def heading(self, text: str) -> None:
        self._told.append(("heading", text, ()))

    def fact(self, text: str, *values: Any) -> None:
        """A line of the story; `{}` in the text is a value."""
        self._told.append(("fact", text, values))

    def log(self, text: str, *values: Any) -> None:
        self._told.append(("log", text, values))

    def verdict(self, fine: bool, yes: str, no: str) -> None:
        self.fine = self.fine and fine
        self._told.append(("verdict", f"✓ {yes}" if fine else f"✗ {no}", ()))

    def lines(self, lang: str, paint: Paint) -> Iterator[str]:
        texts = self.words.get(lang, {})
        for kind, text, values in self._told:
            line = texts.get(text, text).format(*values)
            if kind == "heading":
                yield paint(line, "bold")
            elif kind == "verdict":
                yield from ("", paint(line, "ok" if self.fine else "fail"), "")
            else:
                yield f"  {line}" if kind == "fact" else paint(f"[INFO] {line}", "dim")

    def facts(self) -> list[dict[str, Any]]:
        """The same for machines: each with its kind, its text in English, and its values."""
        return [{"kind": kind, "text": text.format(*values), "values": [*map(_plain, values)]}
                for kind, text, values in self._told]  # fmt: skip


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else str(value)


class _Listener(logging.Handler):
    def __init__(self, story: Story, controller: str, phrases: Phrases) -> None:
        super().__init__(logging.DEBUG)
        self._story = story
        self._controller = controller
        self._phrases = phrases

    def emit(self, record: logging.LogRecord) -> None:
        scope = logs.scope.get()
        if scope is None or scope.controller != self._controller or record.msg not in self._phrases:
            return
        values = record.args if isinstance(record.args, tuple) else ()
        self._story.log(*self._phrases[record.msg](*values))


@contextmanager
def listening(story: Story, controller: str, phrases: Phrases) -> Iterator[None]:
    """What this controller logs inside the block becomes part of the story: the messages that have a phrase."""
    logger = logging.getLogger("konverge.controller")
    handler, before, passed_on = _Listener(story, controller, phrases), logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
        logger.propagate = passed_on
