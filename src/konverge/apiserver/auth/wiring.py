"""The parts of authentication and authorization, put together and plugged into a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from konverge.apiserver.auth import openid
from konverge.apiserver.auth.authentication import Authentication
from konverge.apiserver.auth.authorization import Authorization
from konverge.apiserver.auth.gate import AuthGate
from konverge.apiserver.auth.reviews import Reviews
from konverge.apiserver.auth.service_account_tokens import Accounts
from konverge.apiserver.auth.token_keys import Keys
from konverge.apiserver.auth.token_request import TokenRequests
from konverge.apiserver.request.user import ADMIN

if TYPE_CHECKING:
    from konverge.apiserver.server import ApiServer


def plug_in(server: ApiServer) -> AuthGate:
    """Give a server its gate, the reviews and the documents about its tokens."""
    settings = server.config.auth
    audiences = settings.own_audiences
    keys = Keys(folder=server.data_dir, signing=settings.signing_key, verifying=settings.verification_keys)
    accounts = Accounts(server.objects, keys, settings.issuer)
    authentication = Authentication(settings, accounts)
    authentication.add(server.token, ADMIN)
    authorization = Authorization(server.store, always_allow=settings.always_allow)
    reviews = Reviews(authentication, authorization, audiences)
    documents = openid.OpenId(keys, settings.issuer)
    server.specials |= {
        ("authentication.k8s.io", "selfsubjectreviews", ""): reviews.self_subject,
        ("authentication.k8s.io", "tokenreviews", ""): reviews.token,
        ("authorization.k8s.io", "selfsubjectaccessreviews", ""): reviews.self_access,
        ("authorization.k8s.io", "subjectaccessreviews", ""): reviews.access,
        ("authorization.k8s.io", "localsubjectaccessreviews", ""): reviews.local_access,
        ("authorization.k8s.io", "selfsubjectrulesreviews", ""): reviews.self_rules,
        ("", "serviceaccounts", "token"): TokenRequests(accounts, audiences).create,
    }
    server.routes[openid.CONFIGURATION_PATH] = documents.configuration
    server.routes[openid.KEYS_PATH] = documents.keys
    return AuthGate(authentication, authorization)
