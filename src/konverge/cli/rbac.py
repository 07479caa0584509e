"""`konverge rbac`: the permissions that operators need, read off their code, with nothing to spare."""

from __future__ import annotations

import argparse
from typing import Any

from konverge.cli.arguments import add_operators, add_output, chosen_operators, command

NAMESPACE = "konverge-system"


def add(commands: Any) -> None:
    about = "print the service account and the roles of operators"
    parser = command(commands, "rbac", about, "konverge rbac webapp --namespace tools | kubectl apply -f -")
    add_operators(parser)
    add_placement(parser)
    add_output(parser, "yaml", "json")
    parser.set_defaults(run=run)


def add_placement(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", "--namespace", default=NAMESPACE, help=f"where they run ({NAMESPACE})")
    parser.add_argument(
        "--watch-namespace",
        action="append",
        default=[],
        metavar="NS",
        help="look at this namespace only; may be given several times (all by default)",
    )


def run(arguments: argparse.Namespace) -> int:
    from konverge.cli.documents import write
    from konverge.cli.installation import Installation

    operators = chosen_operators(arguments.operators)
    plan = Installation(operators=operators, namespace=arguments.namespace, watched=tuple(arguments.watch_namespace))
    print(write(plan.access(), arguments.output))
    return 0
