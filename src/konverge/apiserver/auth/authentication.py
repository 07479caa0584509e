"""Authentication: client certificates, then bearer tokens, then system:anonymous.

Of a certificate, which the TLS layer has verified, the common name is the user and the organizations are the groups.
Only its subject is read, so a few lines of DER are enough; certificates are few and come with every request of a
connection, so the result is cached. Upstream: apiserver/pkg/authentication/request and token/tokenfile.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from konverge.apiserver import status
from konverge.apiserver.auth.service_account_tokens import Accounts, Authenticated, Refused
from konverge.apiserver.auth.token_keys import unb64
from konverge.apiserver.auth.well_known import AUTHENTICATED
from konverge.apiserver.config import AuthSettings
from konverge.apiserver.request.user import ANONYMOUS, User
from konverge.wire.message import Request

_PROTOCOL_PREFIX = "base64url.bearer.authorization.k8s.io."
"""Browsers cannot set headers on WebSockets: there a token may come as a subprotocol."""
_INVALID = "invalid bearer token"
_COMMON_NAME = bytes.fromhex("550403")
_ORGANIZATION = bytes.fromhex("55040a")
_USER_UID = bytes.fromhex("2b0601040183c25302")  # 1.3.6.1.4.1.57683.2, upstream: parseUIDFromCert
_VERSION = 0xA0
_WIDE_TEXTS = {0x1E: "utf-16-be", 0x1C: "utf-32-be"}
_SUBJECT = 4
"""Its place in a certificate after the version: serial, algorithm, issuer, validity, subject."""


class Authentication:
    """Decides who makes a request."""

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
        """Upstream: NewCSV (token/tokenfile)."""
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
        """The user of a request whose Authorization header is `header`; 401 for credentials that are not valid."""
        if request.peer.certificate is not None:
            user = user_of(request.peer.certificate)
            if user is not None:
                return user
        token = _bearer(header) or _from_protocol(request)
        if token:
            try:
                return self.token(token, self._settings.own_audiences).user
            except Refused:
                raise status.unauthorized() from None
        if not self._settings.anonymous or self._settings.always_allow:  # upstream: ApplyAuthorization
            raise status.unauthorized()
        return ANONYMOUS

    def token(self, token: str, audiences: Iterable[str]) -> Authenticated:
        """The user of a token; raises Refused. One that is no JWT is for this server alone.

        Upstream: WrapAudienceAgnosticToken (apiserver/pkg/authentication/authenticator).
        """
        known = self._known.get(_digest(token))
        if known is not None:
            shared = tuple(audience for audience in audiences if audience in self._settings.own_audiences)
            if not shared:
                raise Refused(_INVALID)
            return Authenticated(known, shared)
        try:
            authenticated = self._accounts.authenticate(token, audiences)
        except Refused as error:
            raise Refused(f"[{_INVALID}, {error}]") from None
        if authenticated is None:
            raise Refused(_INVALID)
        return authenticated


def _digest(token: str) -> bytes:
    """Tokens are looked up by digest: how long that takes reveals nothing about them."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def _bearer(header: str) -> str:
    scheme, _, rest = header.strip().partition(" ")
    return rest.partition(" ")[0] if scheme.lower() == "bearer" else ""


def _from_protocol(request: Request) -> str:
    """Upstream: ProtocolAuthenticator (request/websocket)."""
    if request.headers.get("upgrade").lower() != "websocket":
        return ""
    for protocol in ",".join(request.headers.get_all("sec-websocket-protocol")).split(","):
        if protocol.strip().startswith(_PROTOCOL_PREFIX):
            try:
                return unb64(protocol.strip()[len(_PROTOCOL_PREFIX) :]).decode()
            except ValueError:
                return ""
    return ""


# --- client certificates


@lru_cache(maxsize=1024)
def user_of(certificate: bytes) -> User | None:
    """The user of a certificate (DER); None if it names none or cannot be read. Upstream: CommonNameUserConversion."""
    try:
        names = list(_subject(certificate))
    except (IndexError, ValueError):
        return None
    name = next((text for oid, text in reversed(names) if oid == _COMMON_NAME), "")
    if not name:
        return None
    groups = tuple(text for oid, text in names if oid == _ORGANIZATION)
    uid = next((text for oid, text in names if oid == _USER_UID), "")
    digest = hashlib.sha256(certificate).hexdigest()
    extra = {"authentication.kubernetes.io/credential-id": [f"X509SHA256={digest}"]}
    return User(name, uid, groups if AUTHENTICATED in groups else (*groups, AUTHENTICATED), extra)


def _subject(certificate: bytes) -> Iterator[tuple[bytes, str]]:
    """The (object identifier, text) pairs of the subject."""
    to_be_signed = _first(_first(certificate))
    fields = [content for tag, content in _elements(to_be_signed) if tag != _VERSION]
    for _, names in _elements(fields[_SUBJECT]):
        for _, pair in _elements(names):
            (_, oid), (tag, text) = _elements(pair)
            yield oid, text.decode(_WIDE_TEXTS.get(tag, "utf-8"))


def _first(data: bytes) -> bytes:
    for _, content in _elements(data):
        return content
    raise ValueError("there is no element")


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(tag, content) of DER elements in a row."""
    position = 0
    while position < len(data):
        tag, size = data[position], data[position + 1]
        position += 2
        if size & 0x80:
            digits = size & 0x7F
            size = int.from_bytes(data[position : position + digits], "big")
            position += digits
        if position + size > len(data):
            raise ValueError("an element is longer than what holds it")
        yield tag, data[position : position + size]
        position += size
