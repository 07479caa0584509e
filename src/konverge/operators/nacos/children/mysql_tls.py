"""TLS to MySQL: what the servers' driver, and the programs of MySQL and MariaDB in Jobs, are given.

The driver of Nacos (Connector/J, 8.0.16 and later in every version from 1.4) takes authorities from a Java key store
only. So the operator makes one from the PEM, in the format JKS, which every Java reads and which needs no program to
write. It is in a ConfigMap, because authorities are public, and mounted as a folder, because only then the kubelet
brings changes of it to the pods: the driver reads the file for each new connection, and so does `mysql`.
"""

from __future__ import annotations

import base64
import hashlib
import re
import ssl
import struct

from konverge.objects.kinds.core_v1 import ConfigMap, ConfigMapVolumeSource, EnvVar, Volume, VolumeMount
from konverge.operators.nacos import names
from konverge.operators.nacos.children.config import CA_KEY
from konverge.operators.nacos.desired import Desired
from konverge.operators.nacos.spec.storage import TlsMode

FOLDER = "/mysql-ca"
STORE_KEY = "truststore.jks"
_VOLUME = "mysql-ca"
_STORE_PASSWORD = "changeit"  # noqa: S105 - Java's own default: it protects nothing, authorities are public
# Those of the images, but for useSSL=false.
_COMMON = (
    "characterEncoding=utf8&connectTimeout=1000&socketTimeout=3000&autoReconnect=true&allowPublicKeyRetrieval=true"
)
_DRIVER: dict[TlsMode, str] = {
    "disable": "DISABLED",
    "prefer": "PREFERRED",
    "require": "REQUIRED",
    "verify-ca": "VERIFY_CA",
    "verify-full": "VERIFY_IDENTITY",
}
"""MySQL's names of the modes."""
_MARIADB: dict[TlsMode, str] = {
    "disable": "--skip-ssl",
    "prefer": "--skip-ssl-verify-server-cert",
    "require": "--ssl --skip-ssl-verify-server-cert",
    "verify-ca": "--ssl --ssl-verify-server-cert",
    "verify-full": "--ssl --ssl-verify-server-cert",
}
"""MariaDB's programs check the name where they check the authority. Since 11.4 they check both by default."""

_CLIENT_CA, _BY_MYSQL, _BY_MARIADB = "MYSQL_CA", "MYSQL_TLS", "MARIADB_TLS"
CLIENT_OPTIONS = """\
client=$(command -v mysql || command -v mariadb)
tls=$MARIADB_TLS
if "$client" --help | grep -q -e --ssl-mode; then tls=$MYSQL_TLS; fi
case "$MYSQL_TLS" in *VERIFY*)
  for ca in "${MYSQL_CA:-}" /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt; do
    if [ -s "$ca" ]; then tls="$tls --ssl-ca=$ca"; break; fi
  done
esac
"""
"""Shell: `$tls` are the options for programs of MySQL or MariaDB. Both need a file to check a certificate with."""


def driver_parameters(desired: Desired) -> str:
    """Of the JDBC URL; empty where the spec says nothing, and the image's own are used."""
    tls = desired.spec.database.tls
    if tls is None:
        return ""
    parameters = f"{_COMMON}&sslMode={_DRIVER[tls.mode_in_force]}"
    if has_store(desired):
        store = {"Url": f"file:{FOLDER}/{STORE_KEY}", "Type": "JKS", "Password": _STORE_PASSWORD}
        parameters += "".join(f"&trustCertificateKeyStore{name}={value}" for name, value in store.items())
    return parameters


def has_store(desired: Desired) -> bool:
    """Whether the servers verify the certificate with an authority of the user."""
    tls = desired.spec.database.tls
    return desired.engine == "mysql" and tls is not None and tls.verifies and tls.ca_secret_ref is not None


def client_variables(desired: Desired) -> list[EnvVar]:
    """For `CLIENT_OPTIONS`; none where the spec says nothing."""
    tls = desired.spec.database.tls
    if tls is None:
        return []
    mode = tls.mode_in_force
    variables = {_BY_MYSQL: f"--ssl-mode={_DRIVER[mode]}", _BY_MARIADB: _MARIADB[mode]}
    if has_store(desired):
        variables[_CLIENT_CA] = f"{FOLDER}/{CA_KEY}"
    return [EnvVar(name=name, value=value) for name, value in variables.items()]


def trust_volumes(desired: Desired) -> list[Volume]:
    if not has_store(desired):
        return []
    return [Volume(name=_VOLUME, config_map=ConfigMapVolumeSource(name=names.mysql_ca(desired.name)))]


def trust_mounts(desired: Desired) -> list[VolumeMount]:
    return [VolumeMount(name=_VOLUME, mount_path=FOLDER, read_only=True)] if has_store(desired) else []


def trust_config_map(desired: Desired, ca: str) -> ConfigMap:
    """The authorities, for Java and for other programs."""
    return ConfigMap(
        metadata=desired.metadata(names.mysql_ca(desired.name)),
        data={CA_KEY: ca},
        binary_data={STORE_KEY: base64.b64encode(java_trust_store(ca)).decode()},
    )


_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_MAGIC, _FORMAT, _TRUSTED = 0xFEEDFEED, 2, 2


def java_trust_store(ca: str) -> bytes:
    """A key store in Java's format JKS with the certificates of a bundle in PEM; the same bundle gives the same bytes.

    sun.security.provider.JavaKeyStore has the format: entries, then a SHA-1 of password, a constant and the entries.
    """
    certificates = [ssl.PEM_cert_to_DER_cert(text) for text in _CERTIFICATE.findall(ca)]
    content = struct.pack(">III", _MAGIC, _FORMAT, len(certificates))
    for number, certificate in enumerate(certificates):
        made_at = 0  # or each reconcile would write another file
        content += struct.pack(">I", _TRUSTED) + _text(f"ca-{number}") + struct.pack(">Q", made_at)
        content += _text("X.509") + struct.pack(">I", len(certificate)) + certificate
    digest = hashlib.sha1(_STORE_PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + content, usedforsecurity=False)
    return content + digest.digest()


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()
