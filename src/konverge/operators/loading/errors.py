"""What the loading of an operator raises."""

from __future__ import annotations


class LoadError(Exception):
    """An operator cannot be loaded; the text says why and what to do. `trace` is the user's part of a traceback."""

    def __init__(self, text: str, trace: str = "") -> None:
        super().__init__(text)
        self.trace = trace
