"""What a container of a Job needs to reach a bucket; pure.

The Secret of the credentials is mounted, not given by variables: a container that works for hours follows its changes.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from konverge.objects.kinds.core_v1 import EnvVar, KeyToPath, SecretVolumeSource, Volume, VolumeMount
from konverge.operators.nacos.backup.storage import S3Storage

_CREDENTIALS, _CA = "/s3-credentials", "/s3-ca"
_CA_FILE = "ca.crt"


class Carrier(msgspec.Struct, frozen=True):
    """A run of `carry`."""

    image: str
    action: Literal["upload", "fetch", "delete", "inspect"]


def bucket_variables(s3: S3Storage) -> list[EnvVar]:
    secret = s3.credentials_secret
    values = {
        "S3_ENDPOINT": s3.endpoint,
        "S3_BUCKET": s3.bucket,
        "S3_REGION": s3.region,
        "S3_PATH_STYLE": str(s3.force_path_style).lower(),
        "S3_CREDENTIALS": _CREDENTIALS,
        "S3_ACCESS_KEY": secret.access_key_id_key,
        "S3_SECRET_KEY": secret.secret_access_key_key,
        "S3_SESSION_TOKEN": secret.session_token_key,
    }
    if s3.ca_secret is not None:
        values["S3_CA"] = f"{_CA}/{_CA_FILE}"
    return [EnvVar(name=name, value=value) for name, value in values.items()]


def bucket_mounts(s3: S3Storage) -> list[VolumeMount]:
    mounts = [VolumeMount(name="s3-credentials", mount_path=_CREDENTIALS, read_only=True)]
    if s3.ca_secret is not None:
        mounts.append(VolumeMount(name="s3-ca", mount_path=_CA, read_only=True))
    return mounts


def bucket_volumes(s3: S3Storage) -> list[Volume]:
    volumes = [Volume(name="s3-credentials", secret=SecretVolumeSource(secret_name=s3.credentials_secret.name))]
    if s3.ca_secret is not None:
        items = [KeyToPath(key=s3.ca_secret.key, path=_CA_FILE)]
        volumes.append(Volume(name="s3-ca", secret=SecretVolumeSource(secret_name=s3.ca_secret.name, items=items)))
    return volumes
