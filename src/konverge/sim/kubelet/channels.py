"""The streams of an exec or attach session, as messages whose first byte is the number of a channel.

0 is stdin, 1 stdout, 2 stderr, 3 the outcome (a Status), 4 the size of the terminal; with the fifth version of the
protocol 255 says that a channel has ended. WebSockets carry exactly this; `spdy_channels` gives it to older clients.
"""

from __future__ import annotations

from typing import Any, Protocol

STDIN, STDOUT, STDERR, OUTCOME, RESIZE, ENDED = 0, 1, 2, 3, 4, 255
SUCCESS: dict[str, Any] = {"metadata": {}, "status": "Success"}


class Channels(Protocol):
    """An open session. `konverge.wire.websocket.WebSocket` is one."""

    async def receive(self) -> bytes | None:
        """The next message of the client; None when it has gone."""

    async def send(self, data: bytes) -> None:
        """Send one message. Raises ConnectionError when the client has gone."""

    @property
    def closed(self) -> bool:
        """Whether one side has ended the session."""


def outcome_of(code: int) -> dict[str, Any]:
    """The Status that reports the exit code to the client."""
    if code == 0:
        return SUCCESS
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }
