"""The configuration of a program that runs in a pod: the service account that the kubelet mounts.

The token and the CA are files that the kubelet keeps fresh, so both are given as paths and read again when they change.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from konverge.client.config import Config, TlsSettings
from konverge.client.credentials import TokenFile
from konverge.client.errors import ConfigError

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def available(environ: Mapping[str, str], account: Path = ACCOUNT) -> bool:
    """Whether this process looks like one in a pod with a service account."""
    return bool(environ.get("KUBERNETES_SERVICE_HOST")) and (account / "token").exists()


def in_cluster_config(environ: Mapping[str, str], account: Path = ACCOUNT) -> Config:
    """The configuration from the pod's environment and its mounted service account."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT") or "443"
    if not host:
        raise ConfigError("not in a cluster: KUBERNETES_SERVICE_HOST is not set")
    if not (account / "token").exists():
        raise ConfigError(
            f"{account}/token is missing: the pod has no service account token "
            "(automountServiceAccountToken: false?); mount one, or set KUBECONFIG"
        )
    ca = account / "ca.crt"
    return Config(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        credentials=TokenFile(account / "token"),
        tls=TlsSettings(ca_file=str(ca) if ca.exists() else ""),
        namespace=_namespace(account),
        source="in-cluster service account",
    )


def _namespace(account: Path) -> str:
    try:
        return (account / "namespace").read_text().strip() or "default"
    except OSError:
        return "default"
