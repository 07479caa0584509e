"""The built-in kinds and their stubs are what the generator makes of the Kubernetes that they name."""

from __future__ import annotations

from pathlib import Path

import pytest

from konverge.objects import kinds
from tools.generate_kinds import generate

pytestmark = pytest.mark.spec("O-67")


@pytest.mark.usefixtures("binaries")
def test_generated_files_are_up_to_date(tmp_path: Path) -> None:
    generate(tmp_path)
    present = Path(kinds.__file__).parent
    made = {path.name for path in tmp_path.iterdir()}
    assert made == {path.name for path in present.iterdir() if path.suffix in (".py", ".pyi")} - {"__init__.py"}
    assert [name for name in sorted(made) if (tmp_path / name).read_text() != (present / name).read_text()] == []
