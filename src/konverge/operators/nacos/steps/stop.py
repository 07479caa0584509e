"""How a step ends a round, with one of the document's codes."""

from __future__ import annotations

from typing import Literal

Code = Literal[200, 301, 401, 404, -1]
NORMAL: Code = 200
"""Nothing is wrong: the round has done its part, and the next goes on from there."""
PARAMETER: Code = 301
"""The resource, or something that it refers to, has to be changed by somebody."""
CLUSTER: Code = 401
"""The servers are not of one mind, or not all up."""
SYSTEM: Code = 404
"""Something outside is not as it should be: a Secret, a database, the API server's consent."""
UNKNOWN: Code = -1
"""Not there yet, and nobody can say why: pods that are missing or not ready."""


class Stop(Exception):
    """The round ends here. `reason` is a word for conditions and events, `message` is for people."""

    def __init__(self, code: Code, reason: str, message: str, *, progress: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.progress = progress
        """The operator itself moved something: what went wrong before says nothing any more."""
