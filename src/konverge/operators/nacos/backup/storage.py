"""The places of stored data: a volume, or a bucket of an S3-compatible service."""

from __future__ import annotations

from typing import Annotated

from konverge.objects import MaxLength, MinLength, Model, Pattern, Rule

Folder = Annotated[str, Pattern(r"^([A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*)?$"), MaxLength(128)]
"""A path below the root of a volume or a bucket, without a way up."""
FilePath = Annotated[str, Pattern(r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$"), MaxLength(512)]
ClaimName = Annotated[str, Pattern(r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"), MaxLength(253)]
SecretName = Annotated[str, MinLength(1), MaxLength(253)]
SecretKey = Annotated[str, Pattern(r"^[A-Za-z0-9_-][A-Za-z0-9._-]*$"), MaxLength(253)]
"""It becomes the name of a file."""


class VolumeStorage(Model):
    """A folder in a volume."""

    claim_name: ClaimName
    """The PersistentVolumeClaim, in the namespace of the resource. It has to exist."""
    path: Folder = ""
    """The folder in the volume; empty: its root."""


class CredentialsSecret(Model):
    """The Secret with the credentials of a bucket, in the namespace of the resource."""

    name: SecretName
    """Its name."""
    access_key_id_key: SecretKey = "accessKeyId"
    """The key of the access key's id."""
    secret_access_key_key: SecretKey = "secretAccessKey"  # noqa: S105 - the name of a key
    """The key of the secret access key."""
    session_token_key: SecretKey = "sessionToken"  # noqa: S105
    """The key of the session's token; the Secret need not have it."""


class AuthoritySecret(Model):
    """The Secret with the certificate authority of an endpoint, in the namespace of the resource."""

    name: SecretName
    """Its name."""
    key: SecretKey = "ca.crt"
    """The key with the certificates, in PEM."""


class Bucket(Model):
    """A bucket of an S3-compatible service, and how to reach it."""

    endpoint: Annotated[str, Pattern(r"^https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?/?$"), MaxLength(512)]
    """The address of the service, such as https://s3.eu-central-1.amazonaws.com or http://minio.storage.svc:9000."""
    bucket: Annotated[str, Pattern(r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$"), MaxLength(63)]
    """The bucket. It has to exist."""
    region: Annotated[str, Pattern(r"^[A-Za-z0-9-]+$"), MaxLength(64)] = "us-east-1"
    """The region that requests are signed for."""
    credentials_secret: CredentialsSecret
    """The credentials."""
    ca_secret: AuthoritySecret | None = None
    """Who signed the certificate of the endpoint; without: the authorities that the image knows."""
    force_path_style: bool = False
    """Whether the bucket is part of the path (MinIO, Ceph) instead of the host name."""


class S3Storage(Bucket):
    """A place in a bucket."""

    prefix: Folder = ""
    """What the keys begin with; empty: nothing."""


class Storage(
    Model,
    rules=[Rule("has(self.volume) != has(self.s3)", message="name the place of backups: either volume or s3")],
):
    """Where backups are stored."""

    volume: VolumeStorage | None = None
    """A volume."""
    s3: S3Storage | None = None
    """A bucket of an S3-compatible service."""


class VolumeFile(Model):
    """The data of a backup in a volume."""

    claim_name: ClaimName
    """The PersistentVolumeClaim, in the namespace of the resource."""
    path: FilePath
    """The path of the data in the volume. Its manifest is beside it."""


class S3Object(Bucket):
    """The data of a backup in a bucket."""

    key: FilePath
    """The key of the data. Its manifest is beside it."""


class RestoreSource(
    Model,
    rules=[Rule("has(self.volume) != has(self.s3)", message="name the place of the data: either volume or s3")],
):
    """Data without a NacosBackup: that of a cluster that is gone."""

    volume: VolumeFile | None = None
    """In a volume."""
    s3: S3Object | None = None
    """In a bucket."""


def location_of(place: Storage | RestoreSource, path: str) -> str:
    """For people: pvc://<claim>/<path> or s3://<bucket>/<key>."""
    if place.volume is not None:
        return f"pvc://{place.volume.claim_name}/{path}"
    return f"s3://{place.s3.bucket}/{path}" if place.s3 is not None else ""


def same_data(storage: Storage, path: str, source: RestoreSource) -> bool:
    """Whether a source names what a backup has stored under a path."""
    if source.volume is not None:
        claim = storage.volume.claim_name if storage.volume is not None else ""
        return (claim, path) == (source.volume.claim_name, source.volume.path)
    bucket, there = storage.s3, source.s3
    if bucket is None or there is None:
        return False
    return (bucket.endpoint.rstrip("/"), bucket.bucket, path) == (there.endpoint.rstrip("/"), there.bucket, there.key)
