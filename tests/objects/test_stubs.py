"""The stubs of the built-in kinds: the classes that run, with upstream's descriptions and enumerations."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from konverge.objects import from_json, kinds, to_dict
from konverge.objects.kinds.core_v1 import Pod

pytestmark = pytest.mark.spec("O-67")

FOLDER = Path(kinds.__file__).parent
MODULES = sorted(path.stem for path in FOLDER.glob("*_v*.py"))
ENUM = re.compile(r"Literal\[.*\] \| str")


def classes(path: Path) -> dict[str, list[ast.stmt]]:
    return {node.name: node.body for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)}


def fields(body: list[ast.stmt]) -> dict[str, tuple[str, str]]:
    """Name -> annotation and default."""
    return {
        ast.unparse(node.target): (ast.unparse(node.annotation), ast.unparse(node.value) if node.value else "")
        for node in body
        if isinstance(node, ast.AnnAssign)
    }


@pytest.mark.parametrize("module", MODULES)
def test_a_stub_has_what_its_module_has(module: str) -> None:
    running, stub = classes(FOLDER / f"{module}.py"), classes(FOLDER / f"{module}.pyi")
    assert list(running) == list(stub)
    for name, body in running.items():
        described = {
            field: (ENUM.sub("str", annotation), default) for field, (annotation, default) in fields(stub[name]).items()
        }
        assert described == fields(body), name


def test_stubs_have_descriptions_and_the_modules_that_run_have_none() -> None:
    running, stub = classes(FOLDER / "core_v1.py")["PodSpec"], classes(FOLDER / "core_v1.pyi")["PodSpec"]
    texts = [node.value.value for node in stub if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
    assert len(texts) == 1 + len(fields(stub))
    assert texts[0] == "PodSpec is a description of a pod."
    assert all(isinstance(node, ast.AnnAssign) for node in running)


def test_enumerations_are_in_the_stubs() -> None:
    stub = fields(classes(FOLDER / "core_v1.pyi")["PodSpec"])
    assert stub["restart_policy"][0] == "Literal['Always', 'Never', 'OnFailure'] | str | None"
    service = fields(classes(FOLDER / "core_v1.pyi")["ServiceSpec"])
    assert service["type"][0].startswith("Literal['ClusterIP', ")


def test_a_value_of_a_newer_server_is_read_and_written_back() -> None:
    body: dict[str, Any] = {"metadata": {"name": "a"}, "spec": {"containers": [], "restartPolicy": "Sometimes"}}
    pod = from_json(Pod, b'{"metadata": {"name": "a"}, "spec": {"containers": [], "restartPolicy": "Sometimes"}}')
    assert pod.spec.restart_policy == "Sometimes"
    assert to_dict(pod)["spec"]["restartPolicy"] == body["spec"]["restartPolicy"]
