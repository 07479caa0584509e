"""The executables: written, replaced, runnable."""

from __future__ import annotations

import subprocess
from pathlib import Path

from konverge.apiserver.envtest.assets import install
from konverge.cli.main import main


def test_the_command_writes_both_programs_and_prints_what_to_set(tmp_path: Path, capsys: object) -> None:
    folder = tmp_path / "a b"  # a path with a space must do no harm
    assert main(["envtest-assets", str(folder)]) == 0
    assert sorted(path.name for path in folder.iterdir()) == ["etcd", "kube-apiserver"]
    assert f"KUBEBUILDER_ASSETS={folder}" in capsys.readouterr().out  # type: ignore[attr-defined]
    install(folder)  # again
    shown = subprocess.run([folder / "etcd", "--help"], capture_output=True, text=True, check=True)
    assert "--listen-client-urls" in shown.stdout


def test_a_wrong_flag_ends_with_an_error(tmp_path: Path) -> None:
    install(tmp_path)
    done = subprocess.run([tmp_path / "etcd", "--listen-client-urls", "https://x:1"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "not a plain http URL" in done.stderr
