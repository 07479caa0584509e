"""`konverge crd`: the definitions that an operator needs, made from its classes."""

from __future__ import annotations

import argparse
from typing import Any

from konverge.cli.arguments import add_operators, add_output, chosen_operators, command


def add(commands: Any) -> None:
    about = "print the CustomResourceDefinitions of operators"
    parser = command(commands, "crd", about, "konverge crd webapp | kubectl apply -f -")
    add_operators(parser)
    add_output(parser, "yaml", "json")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from konverge.cli.documents import write

    definitions = [
        definition for operator in chosen_operators(arguments.operators) for definition in operator.definitions()
    ]
    print(write(definitions, arguments.output))
    return 0
