"""Building KubeVirt from its Go modules: the module that is made for it, and what a test says without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.kubevirt import COMMAND, Origin, changed, missing, own_requirements, program

THEIRS = """module example.com/theirs

go 1.24.0

require example.com/other v1.2.3

replace (
\texample.com/other => example.com/other v1.2.2

\texample.com/api => ./staging/src/example.com/api
)

tool (
\texample.com/linter
)
"""


def test_what_counts_for_a_module_counts_for_ours() -> None:
    ours = own_requirements(THEIRS, Origin("example.com/theirs", "v1.8.4", "example.com/theirs/cmd/x"))
    assert ours.startswith("module konverge.invalid/build\n")
    assert "\texample.com/other => example.com/other v1.2.2\n" in ours
    assert "\texample.com/api => example.com/api v1.8.4\n" in ours
    assert "linter" not in ours
    assert ours.endswith("\nrequire example.com/theirs v1.8.4\n")


def test_what_is_missing_is_named_with_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    note = missing("virt-controller", "virt-api")
    assert "virt-controller, virt-api" in note
    assert COMMAND in note
    built = tmp_path / "konverge" / "kubevirt-v1.8.4" / "virt-api"
    assert program("virt-api") == built
    built.parent.mkdir(parents=True)
    built.touch(mode=0o755)
    assert missing("virt-api") == ""


def test_a_change_is_made_once_or_not_at_all() -> None:
    assert changed("port = 1", [("= 1", "= 2"), ("port", "wharf")]) == "wharf = 2"
    for text in ("port = 8", "port = 1, other = 1"):
        with pytest.raises(ValueError, match=r"'= 1' is there \d times"):
            changed(text, [("= 1", "= 2")])
