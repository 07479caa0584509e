"""`konverge service`: the management service of the Nacos operator and the console, in front of any cluster."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from konverge.cli.arguments import add_cluster, add_logs, address, cluster_config, command, refuse_unless_free
from konverge.cli.exit import UsageError

if TYPE_CHECKING:
    import asyncio

    from konverge.client import Config
    from konverge.service import Catalogue
    from konverge.wire.certificate import Certificate

BIND = "127.0.0.1:8082"


def add(commands: Any) -> None:
    about = "manage Nacos by REST and by a web console, each caller with a token of their own"
    parser = command(
        commands,
        "service",
        about,
        "konverge service --kubeconfig konverge.kubeconfig",
        "konverge service --bind-address :8443 --tls-cert-file tls.crt --tls-private-key-file tls.key",
        "konverge service --image-repository harbor.example.com/nacos/nacos-server --versions 2.0.4,2.4.3",
    )
    add_cluster(parser)
    parser.add_argument("--server", default="", metavar="URL", help="the API server, without any kubeconfig")
    parser.add_argument(
        "--certificate-authority", type=Path, metavar="FILE", help="the CA that signed its certificate (PEM)"
    )
    parser.add_argument("--bind-address", type=address, default=BIND, help=f"host:port, or :port for all ({BIND})")
    parser.add_argument("--tls-cert-file", type=Path, help="serve https with this certificate (PEM)")
    parser.add_argument("--tls-private-key-file", type=Path, help="the private key of the certificate (PEM)")
    parser.add_argument(
        "--behind-proxy", action="store_true", help="a proxy in front speaks TLS: allow plain http beyond loopback"
    )
    parser.add_argument("--image-repository", default="", help="where the images of Nacos are (nacos/nacos-server)")
    parser.add_argument("--versions", default="", metavar="V,V", help="versions of Nacos to offer (all known releases)")
    parser.add_argument("--default-version", default="", metavar="V", help="the version when none is given (2.4.3)")
    add_logs(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from konverge.apiserver.signals import run_until_signal
    from konverge.observe import logs
    from konverge.runtime.config import load_configuration

    if arguments.bind_address is None:
        raise UsageError("--bind-address 0 would serve no client; give host:port")
    refuse_unless_free("--bind-address", arguments.bind_address)
    tls = _tls(arguments)
    offered = _catalogue(arguments)
    config = _cluster(arguments)
    log = load_configuration().log
    logs.set_up(arguments.log_level or log.level, arguments.log_format or log.form)
    secure = tls is not None or arguments.behind_proxy
    run_until_signal(lambda stopping: serve(arguments.bind_address, config, offered, tls, stopping, secure=secure))
    return 0


def _cluster(arguments: argparse.Namespace) -> Config:
    """Where the cluster is. In a pod it is named: there is no token to go by, and none is wanted."""
    from konverge.client import Config
    from konverge.client.config import TlsSettings

    server, authority = arguments.server, arguments.certificate_authority
    if not server:
        if authority is not None:
            raise UsageError("--certificate-authority belongs to --server; a kubeconfig has its own")
        return cluster_config(arguments)
    if arguments.kubeconfig is not None or arguments.context is not None:
        raise UsageError("--server replaces the kubeconfig: leave out --kubeconfig and --context")
    if not re.fullmatch(r"https?://[^/\s]+/?", server):
        raise UsageError(f"--server {server}: give the URL of the API server, such as https://10.0.0.1:6443")
    if authority is not None and not authority.is_file():
        raise UsageError(f"the file {authority} does not exist")
    return Config(server=server, tls=TlsSettings(ca_file=str(authority or "")), source="--server")


async def serve(
    where: tuple[str, int],
    config: Config,
    offered: Catalogue,
    tls: Certificate | None,
    stopping: asyncio.Event,
    *,
    secure: bool,
) -> None:
    """Until `stopping` is set. `secure`: browsers come by https, here or at a proxy in front."""
    import asyncio
    from contextlib import aclosing

    from konverge.cli.console_pages import installed_pages
    from konverge.client.connection import Reconnecting
    from konverge.console import About, Console
    from konverge.service import Service, ServiceOptions
    from konverge.service.access import own_nothing

    async with aclosing(Reconnecting(own_nothing(config))) as transport:
        service = Service(transport, ServiceOptions(catalogue=offered))
        console = Console(
            transport,
            about=About(cluster=config.server, server=config.server),
            service=service.handle,
            pages=installed_pages(),
            secure=secure,
            anywhere=not _is_loopback(where[0]),
            stateless=secure,  # replicas are reached by https alone, and only there is a token safe in a cookie
        )
        async with (
            console.serving(*where, tls=tls.context if tls else None) as (host, port),
            asyncio.TaskGroup() as group,
        ):
            following = group.create_task(tls.follow(), name="konverge.service.certificate") if tls else None
            print(f"ready {'https' if tls else 'http'}://{_bracketed(host)}:{port}", flush=True)
            await stopping.wait()
            service.stop()
            if following is not None:
                following.cancel()


def _tls(arguments: argparse.Namespace) -> Certificate | None:
    """What https is served with. Beyond loopback it is this or a promise: no token travels in the clear by accident."""
    from konverge.wire.certificate import Certificate

    certificate, key = arguments.tls_cert_file, arguments.tls_private_key_file
    if (certificate is None) != (key is None):
        raise UsageError("--tls-cert-file and --tls-private-key-file belong together")
    if certificate is not None:
        try:
            return Certificate(certificate, key)
        except (OSError, ValueError) as error:
            raise UsageError(f"{certificate}, {key}: {error}") from error
    host = arguments.bind_address[0]
    if not _is_loopback(host) and not arguments.behind_proxy:
        raise UsageError(
            f"tokens would travel to {host} in the clear: give --tls-cert-file and --tls-private-key-file, or "
            "--behind-proxy where a proxy in front speaks TLS"
        )
    return None


def _is_loopback(host: str) -> bool:
    from ipaddress import ip_address

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _catalogue(arguments: argparse.Namespace) -> Catalogue:
    from konverge.service.options import DEFAULT, RELEASES, REPOSITORY, Catalogue, CatalogueError

    releases = (
        tuple(part.strip().removeprefix("v") for part in arguments.versions.split(",") if part.strip()) or RELEASES
    )
    chosen = arguments.default_version.removeprefix("v") or (DEFAULT if DEFAULT in releases else releases[0])
    repository = arguments.image_repository or REPOSITORY
    try:
        return Catalogue(repository=repository, releases=releases, default=chosen)
    except CatalogueError as error:
        raise UsageError(str(error)) from error


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
