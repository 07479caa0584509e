"""The real lane: the same promises against the real parts. Every test in this folder is marked `real`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import real_binaries
from tools.control_plane import ControlPlane

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.real)


@pytest.fixture(scope="session")
def binaries() -> Path:
    """The folder with kube-apiserver, etcd, kubectl …; skips with what to do when there is none."""
    folder, note = real_binaries.find()
    if folder is None:
        pytest.skip(note)
    return folder


@pytest.fixture(scope="session")
def real_server(binaries: Path) -> Iterator[ControlPlane]:
    """A real kube-apiserver with etcd, shared by the session: give your objects names or namespaces of their own.

    `.kubeconfig` (client certificate of system:masters), `.url`, `.token`, `.ca_file`.
    """
    with ControlPlane(binaries) as plane:
        yield plane


@pytest.fixture(scope="session")
def kubectl(binaries: Path) -> Path:
    path = binaries / "kubectl"
    if not path.exists():
        pytest.skip(f"no kubectl in {binaries}")
    return path
