"""The packages whose public names are loaded when they are first used."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys

import pytest

from konverge.lazy_imports import lazy_names

PACKAGES = (
    "konverge",
    "konverge.apiserver",
    "konverge.client",
    "konverge.objects",
    "konverge.sim",
    "konverge.testing",
    "konverge.wire",
)


def typed_names(package: str) -> dict[str, str]:
    """Public name -> module, as type checkers read it in `if TYPE_CHECKING`."""
    tree = ast.parse(inspect.getsource(importlib.import_module(package)))
    blocks = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.asname or "": node.module or "" for node in imports for alias in node.names}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_there_and_is_what_type_checkers_see(package: str) -> None:
    module = importlib.import_module(package)
    typed = typed_names(package)
    assert sorted(typed) == module.__all__ == dir(module)
    for name, home in typed.items():
        assert getattr(module, name) is getattr(importlib.import_module(home), name)


def test_a_name_that_is_not_public_is_refused_as_python_does() -> None:
    _, load, _ = lazy_names("konverge.objects", {"konverge.objects.model": "Model"})
    with pytest.raises(AttributeError, match=r"^module 'konverge.objects' has no attribute 'Pod'$"):
        load("Pod")


def test_importing_the_packages_loads_nothing() -> None:
    code = f"import sys, {', '.join(PACKAGES)}; print('msgspec' in sys.modules, 'asyncio' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "False False"
