"""Tokens of service accounts: what they claim, and whether it is still true.

A token is bound to its account and perhaps to a pod, a secret or a node. The signature is checked once and remembered;
whether all those objects still exist is checked on every request: a token ends with the objects that it is bound to.
Upstream: pkg/serviceaccount.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from konverge import clock
from konverge.apiserver.auth.rules import quoted
from konverge.apiserver.auth.token_keys import BadSignature, Keys, unb64
from konverge.apiserver.auth.well_known import AUTHENTICATED, account_groups, account_user
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.request.user import User
from konverge.apiserver.strategy import Obj
from konverge.objects.times import parse_time

if TYPE_CHECKING:
    from konverge.apiserver.object_access import Objects

WARN_ONLY_SECONDS = 3607
"""What pods ask for by default. Upstream: WarnOnlyBoundTokenExpirationSeconds (pkg/serviceaccount/claims.go)."""
_LEEWAY = 60
"""Seconds by which clocks may differ. Upstream: jwt.DefaultLeeway (go-jose)."""
_REMEMBERED = 4096
_EXTRA = "authentication.kubernetes.io/"
_LEGACY_ISSUER = "kubernetes/serviceaccount"
_LEGACY_CLAIM = "kubernetes.io/serviceaccount/"


class Refused(Exception):
    """A token that is not accepted; the text says why."""


class Authenticated(msgspec.Struct, frozen=True):
    user: User
    audiences: tuple[str, ...]


class Bound(msgspec.Struct, frozen=True):
    """What a token is bound to besides its account: a pod (with its node), a secret or a node."""

    kind: str
    name: str
    uid: str
    node: Obj | None = None


class Accounts:
    """Issues and verifies tokens."""

    def __init__(self, objects: Objects, keys: Keys, issuer: str, audiences: Sequence[str]) -> None:
        self._objects = objects
        self._keys = keys
        self._issuer = issuer
        self._own_audiences = audiences
        self._verified: dict[str, Obj] = {}

    async def prepare(self) -> None:
        """To be awaited before `issue`."""
        await self._keys.prepare()

    def issue(
        self, account: Obj, bound: Bound | None, *, seconds: int, audiences: Sequence[str], warn_after: int = 0
    ) -> str:
        metadata, now = account["metadata"], int(clock.now())
        about: Obj = {
            "namespace": metadata["namespace"],
            "serviceaccount": {"name": metadata["name"], "uid": metadata["uid"]},
        }
        if bound is not None:
            about[bound.kind] = {"name": bound.name, "uid": bound.uid}
            if bound.node is not None:
                about["node"] = bound.node
        if warn_after:
            about["warnafter"] = now + warn_after
        claims = {
            "aud": list(audiences),
            "exp": now + seconds,
            "iat": now,
            "iss": self._issuer,
            "jti": clock.new_uid(),
            "kubernetes.io": about,
            "nbf": now,
            "sub": account_user(metadata["namespace"], metadata["name"]),
        }
        return self._keys.sign(claims)

    def authenticate(self, token: str, audiences: Iterable[str]) -> Authenticated | None:
        """The user of a token; None if another issuer made it. Raises Refused if it is not, or no longer, valid.

        Upstream: jwtTokenAuthenticator.AuthenticateToken.
        """
        claims = self._verified.get(token) or _claims(token)
        if claims is None or claims.get("iss") not in (self._issuer, _LEGACY_ISSUER):
            return None
        self._check_signature(token, claims)
        is_legacy = claims["iss"] == _LEGACY_ISSUER
        if not is_legacy:
            _check_times(claims)
        shared = self._shared(claims, audiences)
        return Authenticated(self._legacy_user(token, claims) if is_legacy else self._user(claims), shared)

    def _shared(self, claims: Obj, audiences: Iterable[str]) -> tuple[str, ...]:
        """The audiences that a token is for; one that does not say whom it is for is for this server alone."""
        named = _audiences(claims) or self._own_audiences
        shared = tuple(audience for audience in audiences if audience in named)
        if not shared:
            raise Refused(f"token audiences {quoted(named)} is invalid for the target audiences {quoted(audiences)}")
        return shared

    def _check_signature(self, token: str, claims: Obj) -> None:
        if token in self._verified:
            return
        try:
            self._keys.verify(token)
        except BadSignature:
            raise Refused("go-jose/go-jose: error in cryptographic primitive") from None
        if len(self._verified) >= _REMEMBERED:
            self._verified.clear()
        self._verified[token] = claims

    def _user(self, claims: Obj) -> User:
        """Upstream: validator.Validate (claims.go)."""
        about = claims.get("kubernetes.io") or {}
        namespace = about.get("namespace") or ""
        account = about.get("serviceaccount") or {}
        self._check_account(namespace, account)
        extra: dict[str, list[str]] = {}
        if claims.get("jti"):
            extra[f"{_EXTRA}credential-id"] = [f"JTI={claims['jti']}"]
        if "secret" in about:
            self._check("secrets", "secret", namespace, about["secret"])
        if "pod" in about:
            self._check("pods", "pod", namespace, about["pod"])
            _add_extra(extra, "pod", about["pod"])
        if "node" in about:
            if "pod" not in about:
                self._check("nodes", "node", "", about["node"])
            _add_extra(extra, "node", about["node"])
        groups = (*account_groups(namespace), AUTHENTICATED)
        return User(account_user(namespace, account.get("name", "")), account.get("uid", ""), groups, extra)

    def _legacy_user(self, token: str, claims: Obj) -> User:
        """The account of a token that a controller has put into a secret: the token ends with that secret.

        Upstream: legacyValidator.Validate.
        """
        parts = ("namespace", "service-account.name", "service-account.uid", "secret.name")
        namespace, name, uid, secret_name = (str(claims.get(_LEGACY_CLAIM + part) or "") for part in parts)
        secret = self._objects.get("", "secrets", namespace, secret_name)
        if secret is None or _deleted(secret):
            raise Refused("service account token has been invalidated")
        kept = (secret.get("data") or {}).get("token") or ""
        if base64.b64decode(kept) != token.encode():
            raise Refused("service account token does not match server's copy")
        self._check_account(namespace, {"name": name, "uid": uid})
        return User(account_user(namespace, name), uid, (*account_groups(namespace), AUTHENTICATED))

    def _check_account(self, namespace: str, claim: Obj) -> None:
        name = claim.get("name", "")
        account = self._objects.get("", "serviceaccounts", namespace, name)
        if account is None:
            raise Refused(f"serviceaccounts {quote(name)} not found")
        uid = account["metadata"].get("uid")
        if uid != claim.get("uid"):
            raise Refused(f"service account UID ({uid}) does not match claim ({claim.get('uid')})")
        if _deleted(account):
            raise Refused(f"service account {namespace}/{name} has been deleted")

    def _check(self, plural: str, kind: str, namespace: str, claim: Obj) -> None:
        bound = self._objects.get("", plural, namespace, claim.get("name", ""))
        if bound is None or _deleted(bound):
            raise Refused("service account token has been invalidated")
        uid = bound["metadata"].get("uid")
        if uid != claim.get("uid"):
            raise Refused(f"{kind} UID ({uid}) does not match service account {kind} ref claim ({claim.get('uid')})")


def _add_extra(extra: dict[str, list[str]], kind: str, claim: Obj) -> None:
    extra[f"{_EXTRA}{kind}-name"] = [claim.get("name", "")]
    if claim.get("uid"):
        extra[f"{_EXTRA}{kind}-uid"] = [claim["uid"]]


def _claims(token: str) -> Obj | None:
    """The claims of a JWT, not yet verified; None for any other text."""
    if token.count(".") != 2:
        return None
    try:
        claims: Any = msgspec.json.decode(unb64(token.split(".")[1]))
    except ValueError:
        return None
    return claims if isinstance(claims, dict) else None


def _audiences(claims: Obj) -> list[str]:
    audiences = claims.get("aud") or []
    return [audiences] if isinstance(audiences, str) else list(audiences)


def _check_times(claims: Obj) -> None:
    now = clock.now()
    if "exp" in claims and now - _LEEWAY > claims["exp"]:
        raise Refused("service account token has expired")
    if "nbf" in claims and now + _LEEWAY < claims["nbf"]:
        raise Refused("service account token is not valid yet")
    if "iat" in claims and now + _LEEWAY < claims["iat"]:
        raise Refused("service account token is issued in the future")


def _deleted(obj: Obj) -> bool:
    """An object whose deletion was requested longer ago than the leeway counts as gone."""
    when = obj["metadata"].get("deletionTimestamp")
    return bool(when) and parse_time(when).timestamp() < clock.now() - _LEEWAY
