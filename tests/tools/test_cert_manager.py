"""Building cert-manager from its Go module: what a test says without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.cert_manager import COMMAND, PROGRAMS, VERSION, chart, missing, program


def test_what_is_missing_is_named_with_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert chart() == tmp_path / "konverge" / f"cert-manager-{VERSION}" / "cert-manager.tgz"
    chart().parent.mkdir(parents=True)
    for name in PROGRAMS:
        program(name).touch(mode=0o755)
    assert COMMAND in missing()
    chart().touch()
    assert missing() == ""
    program("webhook").unlink()
    assert COMMAND in missing()
