"""Who the client is: tokens, token files and passwords, each as a `Credentials`.

A `Credentials` answers two questions. `current()` is asked before every request, so it is synchronous and cheap; None
means that a credential has to be fetched first. `renew(rejected)` fetches one, and is also called after a 401 with
the credential that was refused. However many requests are refused at once, one of them renews; the others get what
it brought.
"""

from __future__ import annotations

import asyncio
import base64
from abc import ABC, abstractmethod
from pathlib import Path
from typing import NamedTuple, Protocol

from konverge import clock
from konverge.client.errors import CredentialError

TOKEN_FILE_PERIOD = 10.0
"""Seconds between two looks at a token file. The kubelet rotates tokens at 80 % of their life, minutes ahead."""


class Credential(NamedTuple):
    """What is sent to the server: an Authorization value, and the client certificate (PEM) when a plugin gave one."""

    authorization: str = ""
    certificate: str = ""
    key: str = ""

    def __repr__(self) -> str:
        return f"Credential({'authorization' if self.authorization else 'no authorization'})"


def sendable(token: str) -> bool:
    """Whether a header can hold the token. What was pasted with a line break cannot be sent."""
    return token.isascii() and token.isprintable()


class Credentials(Protocol):
    """Where credentials come from."""

    def current(self) -> Credential | None:
        """The credential to use now, or None when `renew` must be awaited first."""

    async def renew(self, rejected: Credential | None = None) -> Credential:
        """A credential other than the rejected one if one can be had, else the same again."""


class Static:
    """A credential that never changes.

    >>> Static.bearer("s3cret").current().authorization
    'Bearer s3cret'
    """

    def __init__(self, credential: Credential) -> None:
        self._credential = credential

    @classmethod
    def bearer(cls, token: str) -> Static:
        return cls(Credential(f"Bearer {token}"))

    @classmethod
    def basic(cls, username: str, password: str) -> Static:
        pair = base64.b64encode(f"{username}:{password}".encode()).decode()
        return cls(Credential(f"Basic {pair}"))

    def current(self) -> Credential:
        return self._credential

    async def renew(self, rejected: Credential | None = None) -> Credential:
        return self._credential


ANONYMOUS = Static(Credential())


class TokenFile:
    """A bearer token in a file that another process keeps fresh, as the kubelet does for pods.

    Upstream: `transport.NewCachedFileTokenSource` (client-go).
    """

    def __init__(self, path: str | Path, *, fallback: str = "", period: float = TOKEN_FILE_PERIOD) -> None:
        self.path = Path(path)
        self._period = period
        self._credential = Credential(f"Bearer {fallback}") if fallback else None
        self._next_look = float("-inf")

    def current(self) -> Credential:
        if clock.monotonic() >= self._next_look:
            return self._look()
        assert self._credential is not None
        return self._credential

    async def renew(self, rejected: Credential | None = None) -> Credential:
        return self._look()

    def _look(self) -> Credential:
        token = self._read()
        self._next_look = clock.monotonic() + self._period
        credential = Credential(f"Bearer {token}")
        # An unchanged token stays the same object: headers are kept per object.
        if credential != self._credential or self._credential is None:
            self._credential = credential
        return self._credential

    def _read(self) -> str:
        try:
            token = self.path.read_text("utf-8", "replace").strip()
        except OSError as error:
            return self._last_good(f"cannot read the token file {self.path}: {error.strerror}", error)
        if not sendable(token):
            return self._last_good(f"the token file {self.path} holds something else than one token", None)
        return token or self._last_good(f"the token file {self.path} is empty", None)

    def _last_good(self, problem: str, error: OSError | None) -> str:
        """A file that is being replaced may be missing for a moment; the token in hand is still good."""
        if self._credential is None:
            raise CredentialError(problem) from error
        return self._credential.authorization.removeprefix("Bearer ")


class Renewing(ABC):
    """The base of credentials that cost something to get: one fetch at a time, and its result is shared."""

    def __init__(self) -> None:
        self._credential: Credential | None = None
        self._lock = asyncio.Lock()
        self._failures = 0
        self._failure = ""

    def current(self) -> Credential | None:
        return self._credential if self._credential is not None and self._fresh() else None

    async def renew(self, rejected: Credential | None = None) -> Credential:
        failures = self._failures
        async with self._lock:
            held = self.current()
            if held is not None and held is not rejected:
                return held
            if self._failures != failures:
                raise CredentialError(self._failure)  # failed while this task waited: all waiters fail together
            try:
                self._credential = await self._fetch()
            except CredentialError as error:
                self._failures += 1
                self._failure = str(error)
                raise
            return self._credential

    def _fresh(self) -> bool:
        return True

    @abstractmethod
    async def _fetch(self) -> Credential:
        """Get a new credential; no other task is doing so at the moment."""
