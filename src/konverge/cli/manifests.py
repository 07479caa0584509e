"""`konverge manifests`: everything to install for operators to run in a cluster."""

from __future__ import annotations

import argparse
from typing import Any

from konverge.cli.arguments import add_operators, add_output, chosen_operators, command
from konverge.cli.rbac import add_placement

MAX_REPLICAS = 10


def add(commands: Any) -> None:
    about = "print everything to install: definitions, namespace, roles, Deployment, Service, disruption budget"
    parser = command(
        commands,
        "manifests",
        about,
        "konverge manifests webapp --image example.com/konverge:1.0 | kubectl apply -f -",
        "konverge manifests webapp --namespace tools --watch-namespace shop --replicas 1 --output json",
    )
    add_operators(parser)
    add_placement(parser)
    parser.add_argument("--image", default="", help="the container image (konverge of this version)")
    parser.add_argument("--replicas", type=_replicas, default=2, help="one works, the others stand by (2)")
    parser.add_argument("--service-monitor", action="store_true", help="also for the Prometheus operator")
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
    print(write(plan.everything(), arguments.output))
    return 0


def _version() -> str:
    from importlib.metadata import version

    return version("konverge")
