"""`Config`: where the API server is and who we are to it; and `load_config`, which finds one.

This is the only module of the client that reads the environment. The search order is that of controller-runtime
(`config.GetConfig`): what the caller names, then $KUBECONFIG, then the pod's own service account, then ~/.kube/config.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

import msgspec

from konverge.client.credentials import ANONYMOUS, Credentials, TokenFile
from konverge.client.errors import ConfigError
from konverge.wire.proxy import Proxy, proxy_from_environment

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where the kubelet mounts the service account of a pod."""
_IN_HEADER_NAMES = "!#$&'*+^`|"  # besides letters, digits and what `quote` never touches


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """How the server proves itself to us, and we to it. Files are read again when they change; data is PEM text."""

    ca_file: str = ""
    ca_data: str = ""
    certificate_file: str = ""
    certificate_data: str = ""
    key_file: str = ""
    key_data: str = ""
    server_name: str = ""
    insecure: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        """The files to watch for changes."""
        return tuple(path for path in (self.ca_file, self.certificate_file, self.key_file) if path)

    def __repr__(self) -> str:
        return f"TlsSettings(files={self.files}, server_name={self.server_name!r}, insecure={self.insecure})"


class Impersonation(msgspec.Struct, frozen=True, kw_only=True):
    """Act as another user, as `kubectl --as` does.

    >>> Impersonation(user="jane", groups=("dev",)).headers()
    [('impersonate-user', 'jane'), ('impersonate-group', 'dev')]
    """

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, Sequence[str]] = msgspec.field(default_factory=dict)

    def headers(self) -> list[tuple[str, str]]:
        headers = [("impersonate-user", self.user)]
        headers += [("impersonate-group", group) for group in self.groups]
        if self.uid:
            headers.append(("impersonate-uid", self.uid))
        for key, values in self.extra.items():
            # Keys look like example.com/project; what the name of a header cannot hold is sent as %2F.
            headers += [(f"impersonate-extra-{quote(key.lower(), safe=_IN_HEADER_NAMES)}", value) for value in values]
        return headers


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything needed to connect.

    config = Config(server="https://127.0.0.1:6443", credentials=Static.bearer(token), tls=TlsSettings(ca_file=ca))
    """

    server: str
    credentials: Credentials = ANONYMOUS
    tls: TlsSettings = TlsSettings()
    namespace: str = "default"
    """The namespace of the context. The client never applies it by itself: wrap it with `Namespaced` for that."""
    proxy: Proxy | None = None
    impersonate: Impersonation | None = None
    compression: bool = True
    """Let the server compress large answers. Costs CPU on both sides; worth it over anything but a fast network."""
    source: str = "code"
    """Where this came from, for error texts."""

    def __post_init__(self) -> None:
        if not self.server.startswith(("http://", "https://")):
            raise ConfigError(f"{self.source}: server {self.server!r} must begin with https:// or http://")


def load_config(
    *, kubeconfig: str | Path | None = None, context: str | None = None, environ: Mapping[str, str] | None = None
) -> Config:
    """Find the configuration as kubectl and client-go do.

    config = load_config()                                     # $KUBECONFIG, in-cluster, ~/.kube/config
    config = load_config(context="staging")
    config = load_config(kubeconfig="/etc/konverge/kubeconfig")
    """
    env = os.environ if environ is None else environ
    config = _find(kubeconfig, context, env)
    return config if config.proxy is not None else replace(config, proxy=_environment_proxy(config, env))


def _environment_proxy(config: Config, env: Mapping[str, str]) -> Proxy | None:
    try:
        return proxy_from_environment(config.server, env)
    except ValueError as error:
        raise ConfigError(f"the proxy in the environment (HTTPS_PROXY, HTTP_PROXY) cannot be used: {error}") from error


def _find(kubeconfig: str | Path | None, context: str | None, env: Mapping[str, str]) -> Config:
    from konverge.client.kubeconfig import Kubeconfig

    if kubeconfig is not None:
        return Kubeconfig.read(kubeconfig).config(context)
    if listed := env.get("KUBECONFIG"):
        return Kubeconfig.read_list(listed).config(context)
    if context is None and _in_cluster(env):
        return in_cluster_config(env)
    home = Path(env.get("HOME") or Path.home()) / ".kube" / "config"
    if home.exists():
        return Kubeconfig.read(home).config(context)
    raise ConfigError(
        "no configuration found: set KUBECONFIG to a kubeconfig file, put one at ~/.kube/config, or run in a pod "
        "with a service account (KUBERNETES_SERVICE_HOST is not set here)"
    )


def _in_cluster(environ: Mapping[str, str], account: Path = ACCOUNT) -> bool:
    """Whether this process looks like one in a pod with a service account."""
    return bool(environ.get("KUBERNETES_SERVICE_HOST")) and (account / "token").exists()


def in_cluster_config(environ: Mapping[str, str], account: Path = ACCOUNT) -> Config:
    """The configuration from the pod's environment and its mounted service account.

    Upstream: `rest.InClusterConfig` (client-go). The kubelet keeps the token and the CA fresh, so both are given as
    paths and read again when they change.
    """
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
