"""What others need to verify service-account tokens: the issuer and its public keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from konverge.apiserver import status
from konverge.apiserver.http import respond
from konverge.apiserver.http.negotiate import clauses
from konverge.wire.message import Response

if TYPE_CHECKING:
    from konverge.apiserver.request.call import Call

KEYS_TYPE = "application/jwk-set+json"


async def configuration(call: Call) -> Response:
    keys = call.server.gate.keys
    await keys.prepare()
    host = call.request.headers.get("host") or "kubernetes.default.svc"
    document = {
        "issuer": call.server.config.auth.issuer,
        "jwks_uri": f"https://{host}/openid/v1/jwks",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": keys.algorithms(),
    }
    return respond.whole(call, 200, msgspec.json.encode(document), "application/json")


async def keys(call: Call) -> Response:
    keys = call.server.gate.keys
    await keys.prepare()
    accepted = call.request.headers.get("accept")
    if accepted and not any(clause.media in (KEYS_TYPE, "*/*") for clause in clauses(accepted)):
        raise status.not_acceptable(f"406: Not Acceptable\n\nAvailable representations: {KEYS_TYPE}", details={})
    return respond.whole(call, 200, msgspec.json.encode(keys.published()), KEYS_TYPE)
