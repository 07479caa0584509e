"""`konverge shell`: a Python prompt with a client of a cluster, where `await` may stand anywhere."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from konverge.cli.arguments import command
from konverge.cli.cluster_choice import add_cluster_choice, chosen_cluster


def add(commands: Any) -> None:
    about = "open a Python prompt with a client of a cluster"
    parser = command(
        commands,
        "shell",
        about,
        "konverge shell",
        "konverge shell dev -c 'print([pod.metadata.name for pod in await client.list(Pod)])'",
    )
    add_cluster_choice(parser)
    parser.add_argument("-c", dest="code", metavar="CODE", help="run this and end, as python -c does")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from konverge.cli.prompt import Prompt
    from konverge.cli.terminal import is_terminal

    with Prompt(chosen_cluster(arguments)) as prompt:
        if arguments.code is not None:
            return prompt.execute(arguments.code)
        if not is_terminal(sys.stdin):
            return prompt.execute(sys.stdin.read())
        prompt.interact()
        return 0
