"""The names of clusters on this machine, as arguments."""

from __future__ import annotations

import argparse
import re

DEFAULT = "konverge"
is_cluster_name = re.compile(r"[a-z0-9]([-a-z0-9.]{0,48}[a-z0-9])?").fullmatch


def cluster_name(text: str) -> str:
    """A name for a cluster: of a folder, and in a kubeconfig.

    >>> cluster_name("dev-2")
    'dev-2'
    """
    if not is_cluster_name(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a name for a cluster: use up to 50 of a-z, 0-9, dashes and dots, such as dev"
        )
    return text
