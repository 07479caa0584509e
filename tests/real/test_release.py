"""A release as its users get it: the packages that `make dist` builds and tries, and the image's file system."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from deploy import rootfs

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.real, pytest.mark.limit(600), pytest.mark.spec("O-90")]


@pytest.fixture(scope="module")
def packages() -> Path:
    """What `make dist` makes."""
    place = ROOT / "build" / "dist"
    command = ["make", "dist", f"PYTHON={sys.executable}", f"DIST={place}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return place


def test_the_packages_are_built_and_tried(packages: Path) -> None:
    names = sorted(path.suffixes[-1] for path in packages.iterdir())
    assert names == [".gz", ".json", ".whl"]
    parts = json.loads(next(packages.glob("*.json")).read_text())
    assert parts["metadata"]["component"]["name"] == "konverge"


def test_the_image_runs_without_anything_else(packages: Path, tmp_path: Path) -> None:
    environment, root = tmp_path / "konverge", tmp_path / "root"
    venv.create(environment, with_pip=True)
    pip = [environment / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--require-hashes", "-r", ROOT / "deploy" / "constraints.txt"], check=True)
    subprocess.run([*pip, "--no-deps", *packages.glob("*.whl")], check=True)
    rootfs.collect(environment, root)
    assert not [name for name in ("sh", "bash", "pip", "apt") if list(root.rglob(f"bin/{name}"))]
    if os.getuid() == 0:
        enter = ["chroot", f"--userspec={rootfs.USER}:{rootfs.USER}", str(root)]
    else:
        enter = ["unshare", "--map-root-user", "chroot", str(root)]
    konverge = [*enter, str(environment / "bin" / "konverge")]
    version = subprocess.run([*konverge, "--version"], check=True, capture_output=True, text=True).stdout
    assert version.startswith("konverge ")
    up = [*konverge, "up", "--output", "json", "--kubeconfig", "/tmp/kubeconfig"]
    with subprocess.Popen(up, stdout=subprocess.PIPE, text=True) as cluster:
        assert cluster.stdout is not None
        assert json.loads(cluster.stdout.readline())["ready"]
        cluster.terminate()
        assert cluster.wait(60) == 0
