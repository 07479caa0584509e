"""Where health is served, and which program this is, in the first lines."""

from __future__ import annotations

import logging
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from konverge.client import Client
from konverge.objects.kinds.core_v1 import ConfigMap, Pod, Secret
from konverge.runtime import Context, Controller, Manager, Settings, Use
from konverge.runtime.introduction import introduce, program_source

pytestmark = pytest.mark.spec("O-61")


async def nothing(ctx: Context[Any]) -> None: ...


async def test_the_address_of_the_health_server_is_a_line(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "konverge")
    manager = Manager(client, health_address=("127.0.0.1", 0)).add(Controller(Secret, nothing))
    async with manager.running():
        assert f"health is served at 127.0.0.1:{manager.health_port}\n" in caplog.text


def test_a_controller_is_introduced_by_what_it_declares(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "konverge")
    plain = Controller(Secret, nothing, name="plain")
    more = Controller(
        Secret, nothing, name="more", namespaces=("a", "b"), owns=[ConfigMap], uses=[Use(Pod, cached=True)]
    )
    own = Controller(Secret, nothing, name="own", settings=Settings(workers=5))
    fixed = Controller(Secret, nothing, name="fixed", workers=7, settings=Settings(workers=5))
    introduce([plain, more, own, fixed], Settings(workers=3), "")
    assert caplog.messages == [
        "plain watches secrets in all namespaces; 3 workers",
        "more watches secrets in namespaces a, b; owns configmaps; looks at pods; 3 workers",
        "own watches secrets in all namespaces; 5 workers",
        "fixed watches secrets in all namespaces; 7 workers",
        "leader election: none, so let only one process run",
    ]


@pytest.mark.parametrize(
    ("file", "spec", "source"),
    [
        ("/srv/shop/my_operator.py", None, "/srv/shop/my_operator.py"),
        (str(Path.cwd() / "src/my_operator.py"), None, "src/my_operator.py"),
        ("/srv/shop/backup/__main__.py", "backup.__main__", "backup"),
        ("/srv/shop/backup/operator.py", "backup.operator", "backup.operator"),
        ("/usr/bin/backup", None, __name__),
        ("/usr/lib/pytest/__main__.py", "pytest.__main__", "/usr/lib/pytest/__main__.py"),
        ("/usr/lib/konverge/cli/main.py", "konverge.cli.main", "/usr/lib/konverge/cli/main.py"),
        ("/srv/shop/my_operator.py", "", "/srv/shop/my_operator.py"),
        (None, None, __name__),
    ],
)
def test_the_commands_in_messages_name_the_program(
    file: str | None, spec: str | None, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = types.ModuleType("__main__")
    main.__file__ = file
    main.__spec__ = None if spec is None else types.SimpleNamespace(name=spec)  # type: ignore[assignment]
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert program_source([Controller(Secret, nothing)]) == source
