"""The root of the package: every public name is there, and none is loaded before it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

from konverge import objects


@pytest.mark.parametrize("name", objects.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(objects, name) is not None


def test_the_list_of_names_is_complete() -> None:
    assert sorted(objects._MODULE_OF) == sorted(objects.__all__) == sorted(dir(objects))
    with pytest.raises(AttributeError, match="no attribute 'Pod'"):
        objects.Pod  # noqa: B018


def test_importing_loads_nothing() -> None:
    code = "import sys; import konverge, konverge.objects; print('msgspec' in sys.modules, 'asyncio' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "False False"
