"""What containers and volumes refer to, read from the API as it is now."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

from konverge import clock
from konverge.client import Client, NotFound
from konverge.objects.kinds.core_v1 import ConfigMap, Pod, Secret, ServiceAccount
from konverge.objects.times import parse_time

_FRESH = 0.8
"""A token is renewed when so much of its life is over."""


class Lookup:
    """The objects that one pod may refer to. Tokens are kept until they grow old."""

    def __init__(self, client: Client, pod: Pod) -> None:
        self._client = client
        self._pod = pod
        self._tokens: dict[tuple[str, int], tuple[bytes, float]] = {}
        self.next_token = float("inf")
        """When the first of the tokens should be renewed."""

    async def config_map(self, name: str) -> dict[str, str] | None:
        try:
            return dict((await self._client.get(ConfigMap, name, self._pod.metadata.namespace)).data)
        except NotFound:
            return None

    async def config_map_data(self, name: str) -> dict[str, bytes] | None:
        try:
            config_map = await self._client.get(ConfigMap, name, self._pod.metadata.namespace)
        except NotFound:
            return None
        plain = {key: value.encode() for key, value in config_map.data.items()}
        return plain | {key: b64decode(value) for key, value in config_map.binary_data.items()}

    async def secret(self, name: str) -> dict[str, bytes] | None:
        try:
            secret = await self._client.get(Secret, name, self._pod.metadata.namespace)
        except NotFound:
            return None
        return {key: b64decode(value) for key, value in secret.data.items()}

    async def token(self, audience: str, seconds: int) -> bytes:
        key = (audience, seconds)
        known = self._tokens.get(key)
        if known is None or clock.now() >= known[1]:
            known = self._tokens[key] = await self._issue(audience, seconds)
            self.next_token = min(again for _, again in self._tokens.values())
        return known[0]

    async def _issue(self, audience: str, seconds: int) -> tuple[bytes, float]:
        meta, spec = self._pod.metadata, self._pod.spec
        bound = {"kind": "Pod", "apiVersion": "v1", "name": meta.name, "uid": meta.uid}
        token_spec: dict[str, Any] = {"expirationSeconds": max(seconds, 600), "boundObjectRef": bound}
        if audience:
            token_spec["audiences"] = [audience]
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": token_spec}
        account = spec.service_account_name or "default"
        made = await self._client.create_sub(ServiceAccount, account, "token", body, meta.namespace)
        now = clock.now()
        life = parse_time(made["status"]["expirationTimestamp"]).timestamp() - now
        return str(made["status"]["token"]).encode(), now + life * _FRESH
