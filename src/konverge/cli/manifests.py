"""`konverge manifests`: everything to install for operators to run in a cluster."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from konverge.cli.arguments import add_operators, add_output, chosen_operators, command
from konverge.cli.exit import UsageError
from konverge.cli.rbac import add_placement

if TYPE_CHECKING:
    from konverge.cli.installation import Installation

MAX_REPLICAS = 10


def add(commands: Any) -> None:
    about = "print everything to install: definitions, namespace, roles, Deployment, Service, disruption budget"
    parser = command(
        commands,
        "manifests",
        about,
        "konverge manifests webapp --image example.com/konverge:1.0 | kubectl apply -f -",
        "konverge manifests webapp --namespace tools --watch-namespace shop --replicas 1 --output json",
        "konverge manifests nacos --management --tls-secret nacos-management-tls",
    )
    add_operators(parser)
    add_placement(parser)
    parser.add_argument("--image", default="", help="the container image (konverge of this version)")
    parser.add_argument("--replicas", type=_replicas, default=2, help="one works, the others stand by (2)")
    parser.add_argument("--service-monitor", action="store_true", help="also for the Prometheus operator")
    parser.add_argument("--management", action="store_true", help="also the management service of Nacos")
    parser.add_argument("--tls-secret", default="", metavar="NAME", help="the Secret of its certificate")
    parser.add_argument("--behind-proxy", action="store_true", help="or something in front of it speaks TLS")
    add_output(parser, "yaml", "json")
    parser.set_defaults(run=run)


def _replicas(text: str) -> int:
    if not text.isdecimal() or not 0 <= int(text) <= MAX_REPLICAS:
        raise argparse.ArgumentTypeError(f"must be between 0 and {MAX_REPLICAS}")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    from konverge.cli.documents import write
    from konverge.cli.installation import Installation

    plan = Installation(
        operators=chosen_operators(arguments.operators),
        namespace=arguments.namespace,
        watched=tuple(arguments.watch_namespace),
        image=arguments.image or f"konverge:{_version()}",
        replicas=arguments.replicas,
        service_monitor=arguments.service_monitor,
    )
    print(write([*plan.everything(), *_management(arguments, plan)], arguments.output))
    return 0


def _management(arguments: argparse.Namespace, plan: Installation) -> list[dict[str, Any]]:
    from konverge.cli.management import Management

    if not arguments.management:
        return []
    if "nacos" not in arguments.operators:
        raise UsageError("--management is the service of the Nacos operator: name nacos too")
    if bool(arguments.tls_secret) == arguments.behind_proxy:
        raise UsageError("tokens travel to the management service: give --tls-secret, or --behind-proxy, one of them")
    management = Management(
        operator=plan.name, namespace=plan.namespace, image=plan.image, tls_secret=arguments.tls_secret
    )
    return management.everything()


def _version() -> str:
    from importlib.metadata import version

    return version("konverge")
