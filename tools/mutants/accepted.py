"""The survivors that were read and accepted, each with the reason: tools/mutants_accepted.toml.

[[survivor]]
file = "src/konverge/cache/store.py"
function = "Store.put"
operator = "comparison at the edge"
change = "a < b → a <= b"
reason = "equal versions hold equal objects"
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from tools.mutants.source import Mutant

_FIELDS = ("file", "function", "operator", "change")


class Accepted:
    def __init__(self, path: Path) -> None:
        entries = tomllib.loads(path.read_text(encoding="utf-8")).get("survivor", []) if path.is_file() else []
        self._reasons: dict[tuple[str, ...], str] = {}
        for entry in entries:
            if set(entry) != {*_FIELDS, "reason"} or not entry["reason"].strip():
                raise SystemExit(f"{path.name}: an entry needs {', '.join(_FIELDS)} and a reason: {entry}")
            self._reasons[tuple(entry[field] for field in _FIELDS)] = entry["reason"]

    def __contains__(self, mutant: Mutant) -> bool:
        return mutant.key in self._reasons

    def files(self) -> list[str]:
        return sorted({key[0] for key in self._reasons})

    def stale(self, mutants: list[Mutant]) -> list[tuple[str, ...]]:
        """Entries for the files of these mutants (all of each file) that no mutant has any more."""
        files = {mutant.file for mutant in mutants}
        present = {mutant.key for mutant in mutants}
        return [key for key in self._reasons if key[0] in files and key not in present]

    def missing_files(self, root: Path) -> list[tuple[str, ...]]:
        return [key for key in self._reasons if not (root / key[0]).is_file()]
