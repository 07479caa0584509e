"""The gate of the server. Every request passes it, so the path of the administrator is short."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from konverge.apiserver import status
from konverge.apiserver.auth import impersonation
from konverge.apiserver.auth.authentication import Authentication
from konverge.apiserver.auth.authorization import Authorization, attributes_of
from konverge.apiserver.auth.service_account_tokens import Accounts
from konverge.apiserver.auth.token_keys import Keys
from konverge.apiserver.auth.well_known import MASTERS
from konverge.apiserver.config import AuthSettings
from konverge.apiserver.request.info import RequestInfo
from konverge.apiserver.request.user import ADMIN, User
from konverge.wire.message import Request

if TYPE_CHECKING:
    from konverge.apiserver.object_access import Objects
    from konverge.apiserver.storage import Store

_IMPERSONATE = b"impersonate-"
_FIRST = b"iI"  # of the header, in either case: a look at one byte is enough for the others


class Gate:
    """Authentication and authorization, built from the settings; both are synchronous, as they run on every request.

    `admin_token` is the administrator's. `data_dir` keeps the key that signs tokens.
    """

    def __init__(
        self, settings: AuthSettings, store: Store, objects: Objects, *, admin_token: str, data_dir: Path | None
    ) -> None:
        self.keys = Keys(folder=data_dir, signing=settings.signing_key, verifying=settings.verification_keys)
        self.accounts = Accounts(objects, self.keys, settings.issuer, settings.own_audiences)
        self.authentication = Authentication(settings, self.accounts)
        self.authentication.add(admin_token, ADMIN)
        self.authorization = Authorization(store, always_allow=settings.always_allow)
        self._impersonation = impersonation.Impersonation(self.authorization)

    def identify(self, request: Request, info: RequestInfo) -> User:
        """Who makes the request, impersonation included. Raises 401 or 403."""
        headers = request.headers
        user = self.authentication.user(request, headers.get("authorization"))
        for key, _ in headers.raw:
            if key[0] in _FIRST and key[: len(_IMPERSONATE)].lower() == _IMPERSONATE:
                target = impersonation.requested_user(headers)
                return user if target is None else self._impersonation.become(user, target, attributes_of(info))
        return user

    def authorize(self, user: User, info: RequestInfo) -> None:
        """Raises 403 unless the user may do this."""
        if MASTERS not in user.groups:
            self.authorization.check(user, attributes_of(info))

    def authorize_session(self, user: User, info: RequestInfo) -> None:
        """Raises 403 unless the user may create what was asked for by another verb.

        The answer has the reason alone, without who may not do what.
        """
        attrs = replace(attributes_of(info), verb="create")
        decision = self.authorization.decide(user, attrs)
        if not decision.allowed:
            raise status.forbidden(attrs.group, attrs.resource, attrs.name, decision.reason)
