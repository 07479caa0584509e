"""Where `konverge run` serves webhooks: behind a Service, with mounted certificates, or on this machine for a try."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from konverge.cli.arguments import address
from konverge.cli.exit import UsageError

if TYPE_CHECKING:
    from konverge.runtime import Manager
    from konverge.runtime.webhooks.places import Place


def add_webhooks(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--webhooks",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="serve the operators' webhooks; on this machine, where no --webhook option says otherwise (on)",
    )
    parser.add_argument(
        "--webhook-bind-address",
        type=address,
        default=None,
        metavar="HOST:PORT",
        help="where webhooks are served (:9443; a free port of this machine without the two options below)",
    )
    parser.add_argument(
        "--webhook-service",
        type=_service,
        default=None,
        metavar="NAMESPACE/NAME",
        help="the Service in front of the webhooks; the operator issues its certificate itself",
    )
    parser.add_argument(
        "--webhook-cert-dir",
        type=Path,
        default=None,
        metavar="DIR",
        help="a folder with tls.crt and tls.key that another program renews, such as cert-manager",
    )


def _service(text: str) -> tuple[str, str]:
    namespace, slash, name = text.partition("/")
    if not (namespace and slash and name):
        raise argparse.ArgumentTypeError(f"{text!r} is not a Service: use NAMESPACE/NAME")
    return namespace, name


def place_webhooks(manager: Manager, arguments: argparse.Namespace, server: str) -> None:
    """Set where the webhooks of a manager are served: as the command says, else as the manager declares."""
    if manager.webhooks is None or not manager.webhooks.routes:
        return
    if not arguments.webhooks:
        manager.webhooks = None
        return
    from konverge.runtime.webhooks.local import Loopback, is_elsewhere

    place = _place(arguments)
    if isinstance(place or manager.webhooks.place or Loopback(), Loopback) and is_elsewhere(server):
        raise UsageError(
            f"the operator has webhooks, and the API server {server} cannot call this machine: add --no-webhooks to "
            "run without them, or install the operator (`konverge manifests`)"
        )
    if place is not None:
        manager.webhooks = replace(manager.webhooks, place=place)


def _place(arguments: argparse.Namespace) -> Place | None:
    from konverge.runtime.webhooks import InCluster, Loopback, Mounted
    from konverge.runtime.webhooks.registry import PORT

    where = arguments.webhook_bind_address or ("0.0.0.0", PORT)  # noqa: S104 - the Service reaches any address
    if arguments.webhook_cert_dir is not None:
        if arguments.webhook_service is not None:
            raise UsageError("--webhook-service and --webhook-cert-dir exclude each other: who keeps the certificate?")
        return Mounted(folder=arguments.webhook_cert_dir, address=where)
    if arguments.webhook_service is not None:
        namespace, name = arguments.webhook_service
        return InCluster(service=name, namespace=namespace, address=where)
    return Loopback(port=where[1]) if arguments.webhook_bind_address else None
