"""The Secret that Nacos 3 does not start without: a token to sign with, and the servers' identity."""

from __future__ import annotations

import base64
import secrets

from konverge.objects.kinds.core_v1 import Secret
from konverge.operators.nacos import names
from konverge.operators.nacos.children.metadata import metadata
from konverge.operators.nacos.wish import Wish

TOKEN, IDENTITY_KEY, IDENTITY_VALUE = "token", "identity_key", "identity_value"


def auth_secret(wish: Wish) -> Secret:
    """A new one. It is made once and never written again: a new token would end every session."""
    values = {
        TOKEN: base64.b64encode(secrets.token_bytes(48)).decode(),
        IDENTITY_KEY: "nacos-operator-identity",
        IDENTITY_VALUE: secrets.token_urlsafe(24),
    }
    return Secret(
        metadata=metadata(wish, names.auth_secret(wish.name)),
        type="Opaque",
        data={key: base64.b64encode(value.encode()).decode() for key, value in values.items()},
    )
