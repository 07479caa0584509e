"""`konverge service`: the management service of the Nacos operator in front of any cluster."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from konverge.cli.arguments import add_cluster, address, cluster_config, command
from konverge.cli.outcome import UsageError

if TYPE_CHECKING:
    import asyncio
    import ssl

    from konverge.client import Config
    from konverge.service import Catalogue

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
    parser.add_argument("--bind-address", type=address, default=BIND, help=f"host:port, or :port for all ({BIND})")
    parser.add_argument("--tls-cert-file", type=Path, help="serve https with this certificate (PEM)")
    parser.add_argument("--tls-private-key-file", type=Path, help="and this key (PEM)")
    parser.add_argument(
        "--behind-proxy", action="store_true", help="something in front speaks TLS: plain http beyond loopback is meant"
    )
    parser.add_argument("--image-repository", default="", help="where the images of Nacos are (nacos/nacos-server)")
    parser.add_argument("--versions", default="", metavar="V,V", help="those that are offered (all known releases)")
    parser.add_argument("--default-version", default="", metavar="V", help="what is made when nobody says (2.4.3)")
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info", help="(info)")
    parser.add_argument("--log-format", choices=("text", "json"), default="text", help="(text)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from konverge.apiserver.lifetime import run as run_until_told
    from konverge.observe import logs

    if arguments.bind_address is None:
        raise UsageError("--bind-address 0 would serve nobody; give host:port")
    tls = _tls(arguments)
    offered = _catalogue(arguments)
    config = cluster_config(arguments)
    logs.set_up(arguments.log_level, arguments.log_format)
    run_until_told(lambda stopping: serve(arguments.bind_address, config, offered, tls, stopping))
    return 0


async def serve(
    where: tuple[str, int],
    config: Config,
    offered: Catalogue,
    tls: ssl.SSLContext | None,
    stopping: asyncio.Event,
) -> None:
    from contextlib import aclosing

    from konverge.client.connection import Reconnecting
    from konverge.service import Service, ServiceOptions
    from konverge.service.access import own_nothing

    async with aclosing(Reconnecting(own_nothing(config))) as transport:
        service = Service(transport, ServiceOptions(catalogue=offered))
        async with service.serving(*where, tls=tls) as (host, port):
            print(f"ready {'https' if tls else 'http'}://{_bracketed(host)}:{port}", flush=True)
            await stopping.wait()


def _tls(arguments: argparse.Namespace) -> ssl.SSLContext | None:
    """The context for https. Tokens do not travel in the clear by accident: beyond loopback it is this or a promise."""
    from konverge.wire.tls import server_context

    certificate, key = arguments.tls_cert_file, arguments.tls_private_key_file
    if (certificate is None) != (key is None):
        raise UsageError("--tls-cert-file and --tls-private-key-file belong together")
    if certificate is not None:
        try:
            return server_context(certificate.read_bytes(), key.read_bytes())
        except ValueError as error:
            raise UsageError(f"{certificate}, {key}: {error}") from error
    host = arguments.bind_address[0]
    if not _is_loopback(host) and not arguments.behind_proxy:
        raise UsageError(
            f"tokens would travel to {host} in the clear: give --tls-cert-file and --tls-private-key-file, or "
            "--behind-proxy where something in front speaks TLS"
        )
    return None


def _is_loopback(host: str) -> bool:
    from ipaddress import ip_address

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _catalogue(arguments: argparse.Namespace) -> Catalogue:
    from konverge.service.catalogue import DEFAULT, RELEASES, REPOSITORY, Catalogue, CatalogueError

    releases = tuple(one.strip().removeprefix("v") for one in arguments.versions.split(",") if one.strip()) or RELEASES
    chosen = arguments.default_version.removeprefix("v") or (DEFAULT if DEFAULT in releases else releases[0])
    repository = arguments.image_repository or REPOSITORY
    try:
        return Catalogue(repository=repository, releases=releases, default=chosen)
    except CatalogueError as error:
        raise UsageError(str(error)) from error


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
