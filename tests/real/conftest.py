"""The real lane: the same tests against the real programs. Every test in this folder is marked `real`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.real.clients import programs
from tests.real.definitions import Api
from tests.real.embedded import embedded_server as embedded_process
from tests.real.sides import NAMESPACE, Side, our_side, prepare, real_side_of
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


@pytest.fixture(scope="module")
def real_server(binaries: Path) -> Iterator[ControlPlane]:
    """A real kube-apiserver with etcd, shared by a module: give your objects names or namespaces of their own.

    `.kubeconfig` (client certificate of system:masters), `.url`, `.token`, `.ca_file`.
    """
    with ControlPlane(binaries) as plane:
        yield plane


@pytest.fixture(scope="session")
def kubectl(binaries: Path) -> Path:
    return programs.require(binaries, "kubectl")


@pytest.fixture(scope="session")
def helm_program(binaries: Path) -> Path:
    return programs.require(binaries, "helm")


@pytest.fixture(scope="module")
def real_api(real_server: ControlPlane) -> Iterator[Api]:
    """Plain requests to the real server."""
    with closing(Api(real_server)) as api:
        yield api


@pytest.fixture(scope="module")
def real_side(real_server: ControlPlane) -> Iterator[Side]:
    """The real server, for comparisons, with a namespace and its default service account."""
    with closing(real_side_of(real_server)) as side:
        side.send("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        side.send("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", {"metadata": {"name": "default"}})
        yield side


@pytest.fixture(scope="module")
def sides(real_server: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    """The real server and ours, both with the namespace and the definition of the comparisons."""
    with our_side(tmp_path_factory.mktemp("ours")) as ours, closing(real_side_of(real_server)) as real:
        for side in (real, ours):
            prepare(side)
        yield real, ours


@pytest.fixture(scope="module")
def embedded_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of a `konverge apiserver` with TLS, shared by a module: as `real_server`."""
    with embedded_process(tmp_path_factory.mktemp("embedded")) as kubeconfig:
        yield kubeconfig


@pytest.fixture(params=["embedded", "real"])
def either_kubeconfig(request: pytest.FixtureRequest) -> Path:
    """The kubeconfig of the embedded server, then that of the real one: what a client does must be the same on both."""
    if request.param == "real":
        plane: ControlPlane = request.getfixturevalue("real_server")
        return plane.kubeconfig
    kubeconfig: Path = request.getfixturevalue("embedded_server")
    return kubeconfig


@pytest.fixture(scope="session")
def go_programs() -> Path:
    """The folder with the programs of tests/real/programs/go."""
    return programs.go_programs()


@pytest.fixture(scope="session")
def python_clients() -> Path:
    """The bin folder of an environment with other people's clients for Python."""
    return programs.python_clients()
