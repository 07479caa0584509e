"""How much of one sort a caller may have under way at a time."""

from __future__ import annotations

from konverge.console.sessions import Session
from konverge.service.problems import Problem


class Bound:
    """So many at a time for each caller.

    with bound.enter(session): ...
    """

    def __init__(self, most: int, what: str) -> None:
        self._most, self._what = most, what
        self._counts: dict[int, int] = {}

    def enter(self, session: Session) -> Place:
        """Counts from now until it is left. Raises a 429."""
        if self._counts.get(id(session), 0) >= self._most:
            raise Problem(429, f"{self._most} {self._what} of yours are under way already; close some pages")
        return Place(self._counts, session)


class Place:
    """One that is under way."""

    def __init__(self, counts: dict[int, int], session: Session) -> None:
        self._counts, self._session = counts, session  # it keeps the session, so that no other has its id
        self._left = False
        counts[id(session)] = counts.get(id(session), 0) + 1

    def __enter__(self) -> None:
        """It counts since it was made."""

    def __exit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Idempotent."""
        if not self._left:
            self._left = True
            key = id(self._session)
            self._counts[key] -= 1
            if not self._counts[key]:
                del self._counts[key]
