"""The public names of a package, each loaded when it is first used (PEP 562), so that importing the package is cheap.

A package names them twice: in a table for the interpreter and under `if TYPE_CHECKING` for type checkers, which take
`from m import A as A` for a public name. `tests/test_lazy_imports.py` holds the two together.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """`__all__`, `__getattr__` and `__dir__` of a package. `homes`: module -> its public names, with spaces between."""
    module_of = {name: module for module, names in homes.items() for name in names.split()}

    def load(name: str) -> Any:
        module = module_of.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(module), name)
        setattr(sys.modules[package], name, value)
        return value

    names = sorted(module_of)
    return names, load, lambda: names
