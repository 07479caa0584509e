"""What others need to verify service-account tokens: the issuer and its public keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from konverge.apiserver import status
from konverge.apiserver.auth.token_keys import Keys
from konverge.apiserver.http import respond
from konverge.apiserver.http.negotiate import clauses
from konverge.wire.message import Response

if TYPE_CHECKING:
    from konverge.apiserver.request.call import Call

CONFIGURATION_PATH = "/.well-known/openid-configuration"
KEYS_PATH = "/openid/v1/jwks"
KEYS_TYPE = "application/jwk-set+json"


class OpenId:
    """The two documents."""

    def __init__(self, keys: Keys, issuer: str) -> None:
        self._keys = keys
        self._issuer = issuer

    async def configuration(self, call: Call) -> Response:
        await self._keys.prepare()
        host = call.request.headers.get("host") or "kubernetes.default.svc"
        found = {
            "issuer": self._issuer,
            "jwks_uri": f"https://{host}{KEYS_PATH}",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": self._keys.algorithms(),
        }
        return respond.whole(call, 200, msgspec.json.encode(found), "application/json")

    async def keys(self, call: Call) -> Response:
        await self._keys.prepare()
        accepted = call.request.headers.get("accept")
        if accepted and not any(clause.media in (KEYS_TYPE, "*/*") for clause in clauses(accepted)):
            raise status.not_acceptable(f"406: Not Acceptable\n\nAvailable representations: {KEYS_TYPE}", details={})
        return respond.whole(call, 200, msgspec.json.encode(self._keys.published()), KEYS_TYPE)
