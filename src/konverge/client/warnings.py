"""Warning headers of the API server: deprecated versions, unknown fields, admission policies.

The server sends `Warning: 299 - "text"` (RFC 7234, 5.5). They are handed to a `WarningHandler` (upstream:
`rest.WarningHandler`); the default one logs each text once, so that a controller that writes a deprecated kind a
thousand times says so once.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import NamedTuple

log = logging.getLogger("konverge.client")

_CONTROL = r"\x00-\x1f\x7f-\x9f"  # in a text they could forge lines of a log
_VALUE = re.compile(
    rf'\s*(?P<code>\d{{3}}) (?P<agent>[^ "]+) "(?P<text>(?:[^"\\{_CONTROL}]|\\[^{_CONTROL}])*)"(?: "[^"]*")?\s*(?:,|$)'
)
_ESCAPED = re.compile(r"\\(.)")


class ServerWarning(NamedTuple):
    """One warning of the server. The code is 299 for everything that Kubernetes sends."""

    code: int
    agent: str
    text: str


WarningHandler = Callable[[ServerWarning], None]


def parse_warnings(value: str) -> list[ServerWarning]:
    """All warnings of one header value; what is not well-formed ends the list. Upstream: ParseWarningHeaders.

    >>> parse_warnings('299 - "unknown field \\\\"spec.foo\\\\""')
    [ServerWarning(code=299, agent='-', text='unknown field "spec.foo"')]
    """
    parsed = []
    position = 0
    while match := _VALUE.match(value, position):
        parsed.append(ServerWarning(int(match["code"]), match["agent"], _ESCAPED.sub(r"\1", match["text"])))
        position = match.end()
    return parsed


class LogOnce:
    """Logs every text once; forgets the oldest when there are too many of them."""

    def __init__(self, limit: int = 1024) -> None:
        self._limit = limit
        self._seen: dict[str, None] = {}

    def __call__(self, warning: ServerWarning) -> None:
        if warning.text in self._seen:
            return
        if len(self._seen) >= self._limit:
            del self._seen[next(iter(self._seen))]
        self._seen[warning.text] = None
        log.warning("the API server warns: %s", warning.text)


def ignore(warning: ServerWarning) -> None:
    """For programs that want no warnings at all."""
