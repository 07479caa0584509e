"""`konverge envtest-assets DIR`: a drop-in for envtest's kube-apiserver and etcd."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from konverge.cli.arguments import command


def add(commands: Any) -> None:
    about = "put executables named kube-apiserver and etcd into a folder, for KUBEBUILDER_ASSETS"
    parser = command(commands, "envtest-assets", about, 'eval "$(konverge envtest-assets bin)" && go test ./...')
    parser.add_argument("folder", type=Path, metavar="DIR", help="made if it is missing")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from konverge.apiserver.envtest.assets import install

    install(arguments.folder)
    print(f"export KUBEBUILDER_ASSETS={arguments.folder.resolve()}")
    return 0
