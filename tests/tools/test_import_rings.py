from __future__ import annotations

from pathlib import Path

from tools.import_rings import graph, rings

LARGEST_RING = 5
"""Files that have to be understood together, if any of them is to be."""


def test_no_ring_of_source_files_is_larger_than_five() -> None:
    too_large = [ring for ring in rings(graph()) if len(ring) > LARGEST_RING]
    assert not too_large, "python -m tools.import_rings shows who imports whom"


def test_a_ring_counts_lazy_imports_and_imports_for_types(tmp_path: Path) -> None:
    package = tmp_path / "house"
    package.mkdir()
    files = {
        "__init__": "",
        "door": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from house.wall import Wall\n",
        "wall": "def build():\n    from house import roof\n",
        "roof": "import house.door\n",
        "garden": "from house.door import Door\n",
    }
    for name, text in files.items():
        (package / f"{name}.py").write_text(text)
    assert rings(graph(tmp_path)) == [["house.door", "house.roof", "house.wall"]]
    assert rings(graph(tmp_path), "house.door") == []
