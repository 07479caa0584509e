"""What is left of a cluster that was killed is removed, and nothing else."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from konverge.check.child import Child
from konverge.check.model import Setup, Subject
from konverge.sim.processes import warden


@pytest.mark.spec("K-96")
@pytest.mark.parametrize(
    ("folder", "ours"),
    [
        ("/tmp/konverge-check-x1pz", True),
        ("/dev/shm/konverge-memory-eet", True),
        ("/", False),
        ("t", False),
        ("", False),
        ("konverge-check-x1pz", False),
        ("/tmp", False),
        ("/tmp/konverge-check-x1pz/", False),
    ],
)
def test_a_folder_may_be_removed_if_it_was_made_for_a_cluster(folder: str, ours: bool) -> None:
    assert warden.is_ours(folder) is ours


@pytest.mark.spec("K-96")
def test_only_such_folders_are_removed(tmp_path: Path) -> None:
    ours, other = tmp_path / "konverge-check-a", tmp_path / "home"
    for folder in (ours, other):
        (folder / "deep").mkdir(parents=True)
    subprocess.run([sys.executable, "-I", "-S", warden.__file__, ours, other], stdin=subprocess.DEVNULL, check=True)
    assert [item.name for item in tmp_path.iterdir()] == ["home"]


@pytest.mark.spec("K-96")
def test_a_check_names_its_own_folder_to_the_warden() -> None:
    child = Child(Subject(command=("manager",)), Setup())
    (folder,) = child._spawner.temporary
    assert warden.is_ours(folder)
    assert Path(folder).is_dir()
    asyncio.run(child.aclose())
    assert not Path(folder).exists()
