"""What the README shows is what works: its operator and its test are run as they stand there."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

from konverge.sim import Cluster
from konverge.testing import RunOperator

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")


async def test_the_operator_of_the_readme_passes_the_test_of_the_readme(
    cluster: Cluster, operator: RunOperator
) -> None:
    code, its_test = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    module = ModuleType("readme")
    sys.modules["readme"] = module
    exec(compile(code + its_test, "README.md", "exec"), module.__dict__)
    assert module.manager().controllers[0].name == "greeting"
    await module.test_a_greeting_is_written(cluster, cluster.client, operator)
