"""What can go wrong when a Nacos server is asked something: one exception, told apart by its reason."""

from __future__ import annotations

from typing import Literal

Reason = Literal["Unreachable", "Timeout", "Forbidden", "BadAnswer", "ServerError", "Gone"]
"""CamelCase, so that it can stand in a condition. `Gone`: the server has none of the paths that we know."""


class NacosError(Exception):
    """A server gave no usable answer. The message says what to do, and never holds a password or an identity."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason: Reason = reason
        self.message = message

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}"
