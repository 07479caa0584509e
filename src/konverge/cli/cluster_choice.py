"""Which cluster a command looks at: one of `konverge up` by name, or any of a kubeconfig."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from konverge.cli.arguments import add_cluster, cluster_config
from konverge.cli.cluster_names import DEFAULT, cluster_name
from konverge.cli.exit import UsageError

if TYPE_CHECKING:
    from konverge.client import Config


def add_cluster_choice(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", nargs="?", type=cluster_name, metavar="NAME", help="a cluster of `konverge up`, instead of a kubeconfig"
    )
    add_cluster(parser)


def chosen_cluster(arguments: argparse.Namespace) -> Config:
    """The cluster that was named; else as kubectl finds it; else the one of `konverge up`. Raises ConfigError."""
    from konverge.cli.cluster_folders import ClusterFolder, running_cluster
    from konverge.client import ConfigError, load_config

    if arguments.name is not None:
        if arguments.kubeconfig is not None or arguments.context is not None:
            raise UsageError("give the name of a cluster, or --kubeconfig and --context")
        return load_config(kubeconfig=running_cluster(arguments.name).kubeconfig)
    try:
        return cluster_config(arguments)
    except ConfigError:
        folder = ClusterFolder(DEFAULT)
        record = folder.record()
        if arguments.kubeconfig is not None or arguments.context is not None or record is None or not folder.running:
            raise
        return load_config(kubeconfig=record.kubeconfig)
