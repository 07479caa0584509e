"""The `kube-apiserver` of the drop-in: this server, with the flags of the real one.

It understands the flags that say where to listen, which credentials to accept and what to leave out; they become a
`Config`. State is in memory and ends with the process: the etcd that the flags name does not matter.
"""

from __future__ import annotations

import asyncio
import ipaddress
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from konverge.apiserver.envtest.flags import Flag, FlagError, Flags, parse, usage
from konverge.apiserver.kubernetes_version import KUBERNETES_VERSION

if TYPE_CHECKING:
    import ssl

    from konverge.apiserver.config import Config

KNOWN = {
    "allow-privileged": Flag("accepted: privileged containers are always allowed", switch=True),
    "anonymous-auth": Flag("accept requests without credentials, as user system:anonymous", switch=True),
    "api-audiences": Flag("audiences of service-account tokens; the issuer by default"),
    "authorization-mode": Flag("RBAC (also for Node), or AlwaysAllow"),
    "bind-address": Flag("the address to listen on"),
    "cert-dir": Flag("folder of apiserver.crt and apiserver.key; created if they are missing"),
    "client-ca-file": Flag("authority whose client certificates are accepted"),
    "disable-admission-plugins": Flag("admission plugins to leave out"),
    "enable-admission-plugins": Flag("accepted: the default plugins are always on"),
    "etcd-servers": Flag("accepted: the state is in this process"),
    "feature-gates": Flag("ShardedListAndWatch=true serves shardSelector; others have no effect"),
    "secure-port": Flag("the port to serve https on"),
    "service-account-issuer": Flag("issuers of service-account tokens; the first is used for new tokens"),
    "service-account-key-file": Flag("keys or certificates that verify service-account tokens"),
    "service-account-signing-key-file": Flag("the key that signs service-account tokens"),
    "service-cluster-ip-range": Flag("the addresses of Services, as CIDR"),
    "tls-cert-file": Flag("the certificate to serve with, instead of that in --cert-dir"),
    "tls-private-key-file": Flag("its key"),
    "token-auth-file": Flag('lines of token,user,uid,"group1,group2"'),
    "version": Flag("print the version and exit", switch=True),
    "help": Flag("print this text and exit", switch=True),
}
MARKED_FOR = 0.002
"""Seconds: about what the second write of a deletion takes on the real programs. There are no nodes: what a controller
does when a pod is being deleted, it does in that time."""
ABOUT = "The Konverge API server, started as the real kube-apiserver is. Other flags are tolerated without effect."


def main(arguments: Sequence[str]) -> int:
    try:
        flags = parse(arguments, KNOWN)
        if flags.on("help", False):
            print(usage("kube-apiserver", ABOUT, KNOWN))  # noqa: T201 - a program's own output
            return 0
        if flags.on("version", False):
            print(f"Kubernetes v{KUBERNETES_VERSION}")  # noqa: T201
            return 0
        settings = config(flags)
        _run(flags, settings)
    except (FlagError, OSError, ValueError) as error:
        _note(str(error))
        return 1
    return 0


def _note(text: str) -> None:
    print(f"kube-apiserver: {text}", file=sys.stderr, flush=True)  # noqa: T201


def config(flags: Flags) -> Config:
    """The settings that the flags ask for."""
    from konverge.apiserver.config import ISSUER, AuthSettings, Config

    modes = flags.all("authorization-mode") or ("AlwaysAllow",)
    if not set(modes) <= {"RBAC", "Node", "AlwaysAllow"}:
        raise FlagError(f"--authorization-mode: {','.join(modes)}: use RBAC, Node,RBAC or AlwaysAllow")
    auth = AuthSettings(
        issuer=next(iter(flags.values.get("service-account-issuer", ())), ISSUER),
        audiences=flags.all("api-audiences"),
        signing_key=_file(flags, "service-account-signing-key-file"),
        verification_keys=tuple(map(Path, flags.all("service-account-key-file"))),
        token_file=_file(flags, "token-auth-file"),
        anonymous=flags.on("anonymous-auth", True),
        always_allow="AlwaysAllow" in modes,
    )
    ranges = flags.all("service-cluster-ip-range") or ("10.0.0.0/24",)
    ipaddress.ip_network(ranges[0])  # fail now, not when the first Service is created
    disabled = frozenset(flags.all("disable-admission-plugins"))
    gates = frozenset(
        name for name, _, value in (gate.partition("=") for gate in flags.all("feature-gates")) if value == "true"
    )
    return Config(
        auth=auth,
        service_cluster_ips=ranges[0],
        disabled_admission=disabled,
        feature_gates=gates,
        marked_for=MARKED_FOR,
    )


def _file(flags: Flags, name: str) -> Path | None:
    given = flags.get(name)
    if given and not Path(given).is_file():
        raise FlagError(f"--{name}: there is no file {given}")
    return Path(given) if given else None


def _run(flags: Flags, settings: Config) -> None:
    from konverge.apiserver.signals import run_until_signal

    if flags.unknown:
        _note("without effect here: " + " ".join(f"--{name}" for name in dict.fromkeys(flags.unknown)))
    run_until_signal(lambda stopping: serve(flags, settings, stopping))


async def serve(flags: Flags, settings: Config, stopping: asyncio.Event) -> None:
    from konverge.apiserver.server import ApiServer

    async with ApiServer(config=settings) as server:
        host, port = flags.get("bind-address", "0.0.0.0"), int(flags.get("secure-port", "6443"))  # noqa: S104 - as the real one
        url = await server.listen(host, port, tls=_tls(flags, host))
        _note(f"serving on {url}")
        await stopping.wait()


def _tls(flags: Flags, host: str) -> ssl.SSLContext:
    from konverge.wire.tls import server_context

    folder = Path(flags.get("cert-dir", "/var/run/kubernetes"))
    certificate, key = _file(flags, "tls-cert-file"), _file(flags, "tls-private-key-file")
    if certificate is None:
        certificate, key = folder / "apiserver.crt", folder / "apiserver.key"
        if not certificate.is_file() or not key.is_file():
            _self_sign(host, certificate, key)
    trusted = _file(flags, "client-ca-file")
    return server_context(
        certificate.read_bytes(),
        key.read_bytes() if key is not None else b"",
        client_ca=trusted.read_bytes() if trusted is not None else b"",
    )


def _self_sign(host: str, certificate: Path, key: Path) -> None:
    """A self-signed certificate, as the real server makes one: clients accept it only without verification."""
    from konverge.apiserver.certificates import make
    from konverge.apiserver.private_files import write_private

    certificates = make((host,))
    write_private(certificate, certificates.server + certificates.authority)
    write_private(key, certificates.server_key)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
