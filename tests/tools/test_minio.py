"""Building MinIO from its Go module: what a test says without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.minio import COMMAND, RELEASE, missing, program


def test_what_is_missing_is_named_with_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert COMMAND in missing()
    assert program() == tmp_path / "konverge" / f"minio-{RELEASE}" / "minio"
    program().parent.mkdir(parents=True)
    program().touch(mode=0o755)
    assert missing() == ""
