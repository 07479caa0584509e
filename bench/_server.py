"""The server that client benchmarks run against: the real kube-apiserver."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools import real_binaries
from tools.control_plane import ControlPlane


def binaries() -> Path | None:
    older = Path.home() / ".cache" / "konverge-oracle" / "bin"
    if "KUBEBUILDER_ASSETS" not in os.environ and (older / "kube-apiserver").exists():
        return older
    return real_binaries.find()[0]


@contextmanager
def api_server() -> Iterator[tuple[Path, str]]:
    """A kubeconfig, and a description of its server."""
    folder = binaries()
    if folder is None:
        raise SystemExit(f"no API server to measure against: {real_binaries.find()[1]}")
    with ControlPlane(folder) as plane:
        yield plane.kubeconfig, f"kube-apiserver {real_binaries.KUBERNETES} over TLS on loopback"
