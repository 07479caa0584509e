"""Authentication: client certificates, then bearer tokens, then nobody in particular."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable
from pathlib import Path

from konverge.apiserver import status
from konverge.apiserver.auth import certificates
from konverge.apiserver.auth.service_account_tokens import Accounts, Authenticated, Refused
from konverge.apiserver.auth.settings import AuthSettings
from konverge.apiserver.auth.token_keys import unb64
from konverge.apiserver.auth.well_known import AUTHENTICATED
from konverge.apiserver.request.user import ANONYMOUS, User
from konverge.wire.message import Request

_PROTOCOL_PREFIX = "base64url.bearer.authorization.k8s.io."
"""Browsers cannot set headers on WebSockets: there a token may come as a subprotocol."""
INVALID = "invalid bearer token"


class Authentication:
    """Tells who makes a request."""

    def __init__(self, settings: AuthSettings, accounts: Accounts) -> None:
        self._settings = settings
        self._accounts = accounts
        self._known: dict[bytes, User] = {}
        if settings.token_file is not None:
            self._read(settings.token_file)

    def add(self, token: str, user: User) -> None:
        """Accept a token as a user's."""
        self._known[_digest(token)] = user

    def _read(self, path: Path) -> None:
        with path.open(newline="") as file:
            for row in csv.reader(file):
                if not row or row[0].startswith("#"):
                    continue
                if len(row) < 3:
                    raise ValueError(f"{path}: a line must have a token, a user and a uid, and may have groups")
                token, name, uid, *rest = (part.strip() for part in row)
                groups = tuple(group for group in (rest[0] if rest else "").split(",") if group)
                self.add(token, User(name, uid, (*groups, AUTHENTICATED)))

    def user(self, request: Request, header: str) -> User:
        """The user of a request whose Authorization header is `header`; 401 for credentials that are no good."""
        if request.peer.certificate is not None:
            found = certificates.user_of(request.peer.certificate)
            if found is not None:
                return found
        token = _bearer(header) or _from_protocol(request)
        if token:
            try:
                return self.token(token, self._settings.own_audiences).user
            except Refused:
                raise status.unauthorized() from None
        if not self._settings.anonymous:
            raise status.unauthorized()
        return ANONYMOUS

    def token(self, token: str, audiences: Iterable[str]) -> Authenticated:
        """Whose token it is; raises Refused."""
        known = self._known.get(_digest(token))
        if known is not None:
            return Authenticated(known, tuple(audiences))
        try:
            found = self._accounts.authenticate(token, audiences)
        except Refused as error:
            raise Refused(f"[{INVALID}, {error}]") from None
        if found is None:
            raise Refused(INVALID)
        return found


def _digest(token: str) -> bytes:
    """Tokens are looked up by digest: how long that takes tells nothing about them."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def _bearer(header: str) -> str:
    scheme, _, rest = header.strip().partition(" ")
    return rest.partition(" ")[0] if scheme.lower() == "bearer" else ""


def _from_protocol(request: Request) -> str:
    if request.headers.get("upgrade").lower() != "websocket":
        return ""
    for protocol in ",".join(request.headers.get_all("sec-websocket-protocol")).split(","):
        if protocol.strip().startswith(_PROTOCOL_PREFIX):
            try:
                return unb64(protocol.strip()[len(_PROTOCOL_PREFIX) :]).decode()
            except ValueError:
                return ""
    return ""
