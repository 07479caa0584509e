"""The gate of the server: every request passes it, so the administrator's way through is short."""

from __future__ import annotations

from konverge.apiserver.auth import impersonation
from konverge.apiserver.auth.authentication import Authentication
from konverge.apiserver.auth.authorization import Authorization, ask_of
from konverge.apiserver.auth.well_known import MASTERS
from konverge.apiserver.request.info import RequestInfo
from konverge.apiserver.request.user import User
from konverge.wire.message import Request

_IMPERSONATE = b"impersonate-"
_FIRST = b"iI"


class AuthGate:
    """See `Gate`."""

    def __init__(self, authentication: Authentication, authorization: Authorization) -> None:
        self.authentication = authentication
        self.authorization = authorization
        self._impersonation = impersonation.Impersonation(authorization)

    def identify(self, request: Request, info: RequestInfo) -> User:
        headers = request.headers
        user = self.authentication.user(request, headers.get("authorization"))
        for key, _ in headers.raw:
            if key[0] in _FIRST and key[: len(_IMPERSONATE)].lower() == _IMPERSONATE:
                target = impersonation.wanted(headers)
                return user if target is None else self._impersonation.become(user, target, ask_of(info))
        return user

    def authorize(self, user: User, info: RequestInfo) -> None:
        if MASTERS not in user.groups:
            self.authorization.check(user, ask_of(info))
