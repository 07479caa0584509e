"""The gate of the server: every request passes it, so the administrator's way through is short."""

from __future__ import annotations

from konverge.apiserver.auth import impersonation
from konverge.apiserver.auth.authentication import Authentication
from konverge.apiserver.auth.authorization import Authorization, ask_of
from konverge.apiserver.auth.names import MASTERS
from konverge.apiserver.http.request_info import RequestInfo
from konverge.apiserver.http.seams import User
from konverge.wire.message import Request

_AUTHORIZATION = b"authorization"
_IMPERSONATE = b"impersonate-"


class AuthGate:
    """See `Gate`."""

    def __init__(self, authentication: Authentication, authorization: Authorization) -> None:
        self.authentication = authentication
        self.authorization = authorization
        self._impersonation = impersonation.Impersonation(authorization)

    def identify(self, request: Request, info: RequestInfo) -> User:
        header, impersonates = "", False
        for key, value in request.headers.raw:
            size = len(key)
            if size == len(_AUTHORIZATION) and key.lower() == _AUTHORIZATION:
                header = header or value.decode("latin-1")
            elif size > len(_IMPERSONATE) and key[: len(_IMPERSONATE)].lower() == _IMPERSONATE:
                impersonates = True
        user = self.authentication.user(request, header)
        if not impersonates:
            return user
        target = impersonation.wanted(request.headers)
        return user if target is None else self._impersonation.become(user, target, ask_of(info))

    def authorize(self, user: User, info: RequestInfo) -> None:
        if MASTERS not in user.groups:
            self.authorization.check(user, ask_of(info))
