"""S3-compatible storage, as the Jobs of backups see it: objects that stay until they are deleted, and its refusals."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from konverge.operators.nacos.backup.failures import Failure
from konverge.sim.databases import Content

if TYPE_CHECKING:
    from konverge.operators.nacos.backup.s3.connection import Place


class StoredFile(msgspec.Struct):
    """A file of a volume, or an object: the content of a database, and the bytes that stand for it."""

    content: Content
    data: bytes

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


class SimulatedEndpoint(msgspec.Struct):
    """One service."""

    buckets: dict[str, dict[str, StoredFile]] = msgspec.field(default_factory=dict)
    """Objects by bucket and key."""
    users: dict[str, str] | None = None
    """Secret access keys by their ids; None: all are accepted."""
    region: str = ""
    """Of its buckets; empty: any."""
    denied: bool = False
    """The credentials are known, and may do nothing."""
    untrusted: bool = False
    """Its certificate is signed by an authority that only a caSecret names."""
    down: bool = False


class SimulatedStorage(msgspec.Struct):
    """All endpoints that can be reached, by their URL."""

    endpoints: dict[str, SimulatedEndpoint] = msgspec.field(default_factory=dict)
    willing: bool = True
    """Endpoints and buckets that were not declared come into being when a Job names them."""

    def endpoint(self, url: str, *buckets: str) -> SimulatedEndpoint:
        """Declare one, with empty buckets."""
        endpoint = self.endpoints.setdefault(url, SimulatedEndpoint())
        for bucket in buckets:
            endpoint.buckets.setdefault(bucket, {})
        return endpoint

    def bucket(self, env: Mapping[str, str], secret: Mapping[str, str]) -> dict[str, StoredFile]:
        """The objects that the variables of a Job name. Raises Failure as the program of the Job does."""
        if self.willing:
            self.endpoint(env["S3_ENDPOINT"], env["S3_BUCKET"])
        from konverge.operators.nacos.backup.s3.connection import refusal  # it imports the client of HTTP

        place = _place(env)
        endpoint = self.endpoints.get(place.endpoint)
        if endpoint is None or endpoint.down:
            raise Failure("EndpointUnreachable", f"{place.endpoint} does not answer (Connection refused)")
        if endpoint.untrusted and "S3_CA" not in env:
            raise Failure("TLSNotTrusted", f"the certificate of {place.host} is not trusted: name it in caSecret")
        if (refused := _refused(endpoint, env, secret)) is not None:
            status, code = refused
            raise refusal(status, {"Code": code}, endpoint.region, place)
        return endpoint.buckets[place.bucket]


def _refused(endpoint: SimulatedEndpoint, env: Mapping[str, str], secret: Mapping[str, str]) -> tuple[int, str] | None:
    """The status and the code of the error, in the order in which MinIO looks."""
    if endpoint.region and endpoint.region != env["S3_REGION"]:
        return 400, "AuthorizationHeaderMalformed"
    user, word = secret.get(env["S3_ACCESS_KEY"], ""), secret.get(env["S3_SECRET_KEY"], "")
    if endpoint.users is not None and endpoint.users.get(user) != word:
        return 403, "SignatureDoesNotMatch" if user in endpoint.users else "InvalidAccessKeyId"
    if endpoint.denied:
        return 403, "AccessDenied"
    return None if env["S3_BUCKET"] in endpoint.buckets else (404, "NoSuchBucket")


def _place(env: Mapping[str, str]) -> Place:
    from konverge.operators.nacos.backup.s3.connection import Place
    from konverge.operators.nacos.backup.s3.signature import Credentials

    return Place(
        endpoint=env["S3_ENDPOINT"],
        bucket=env["S3_BUCKET"],
        region=env["S3_REGION"],
        path_style=env["S3_PATH_STYLE"] == "true",
        credentials=lambda: Credentials("", ""),
    )
