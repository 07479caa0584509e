"""TLS of the gRPC port for clients: the lines of application.properties, and where the certificate is mounted.

Servers take TLS and plain text on the same port while `compatibility` is true, so those with and without a certificate
can be mixed during a rollout, and clients follow when they like. Up to 2.3 the setting is also that of the port between
servers, whose clients speak plain text: there plain text cannot be refused. Between servers there is no TLS: raft knows
none, and the setting for gRPC (since 2.4) would cut off each restarted server from those that are still to come.
"""

from __future__ import annotations

from konverge.objects.kinds.core_v1 import SecretVolumeSource, Volume, VolumeMount
from konverge.operators.nacos.desired import Desired

CERTIFICATE, KEY = "tls.crt", "tls.key"
FOLDER = "/nacos-tls"
_VOLUME = "nacos-tls"
_PREFIX = "nacos.remote.server.rpc.tls"


def tls_properties(desired: Desired) -> list[str]:
    """Files by URL: servers look for a plain path in their jars."""
    tls = desired.spec.tls
    if tls is None:
        return []
    return [
        f"{_PREFIX}.enableTls=true",
        f"{_PREFIX}.certChainFile=file:{FOLDER}/{CERTIFICATE}",
        f"{_PREFIX}.certPrivateKey=file:{FOLDER}/{KEY}",
        f"{_PREFIX}.compatibility={'true' if tls.plaintext == 'Allowed' else 'false'}",
    ]


def tls_volumes(desired: Desired) -> list[Volume]:
    tls = desired.spec.tls
    return [] if tls is None else [Volume(name=_VOLUME, secret=SecretVolumeSource(secret_name=tls.secret_ref.name))]


def tls_mounts(desired: Desired) -> list[VolumeMount]:
    if desired.spec.tls is None:
        return []
    return [VolumeMount(name=_VOLUME, mount_path=FOLDER, read_only=True)]
