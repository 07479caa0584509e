"""Failed reconciles in the log: one line each, and a traceback once for each defect."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from konverge.client import Client, Forbidden
from konverge.objects import Status, StatusCause
from konverge.objects.kinds.core_v1 import Secret
from konverge.objects.meta import StatusDetails
from konverge.observe.repeated import Repeated
from konverge.runtime import Context, Controller, Manager, Settings
from konverge.runtime.failures import MAX_DEFECTS, TRACEBACK_PERIOD, Failures
from konverge.runtime.result import Request
from konverge.workqueue import Item
from tests.runtime.objects import secret

pytestmark = [pytest.mark.virtual, pytest.mark.spec("O-63")]

KEY = Request("default", "a")


async def reconcile(ctx: Context[Any]) -> None:
    check(ctx.request.name)


def check(name: str) -> None:
    int(name)  # the author's line


def authors_line() -> int:
    return check.__code__.co_firstlineno + 1


async def failing(client: Client, caplog: pytest.LogCaptureFixture, seconds: float) -> list[logging.LogRecord]:
    await client.create(secret("a"))
    manager = Manager(client, settings=Settings(base_delay=1, max_delay=100)).add(Controller(Secret, reconcile))
    async with manager.running():
        await asyncio.sleep(seconds)
    return [record for record in caplog.records if record.name == "konverge.controller"]


async def test_a_line_names_the_object_the_error_the_authors_line_the_next_attempt_and_the_reason(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = await failing(client, caplog, 2)
    text = first.getMessage()
    assert text.startswith("secret default/a: ValueError: invalid literal for int() with base 10: 'a' at ")
    assert f"at test_failures.py:{authors_line()} in check" in text
    assert "(attempt 1, the next in 1 s; reconciled because: Secret default/a listed)" in text
    assert "(attempt 2, the next in 2 s; " in second.getMessage()
    assert "\n" not in text


async def test_a_traceback_follows_once_and_begins_at_the_authors_code(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    first, *others = await failing(client, caplog, 60)
    assert len(others) > 3
    assert not any(record.exc_info for record in others)
    assert first.exc_text is not None
    assert "in reconcile" in first.exc_text
    assert "in check" in first.exc_text
    assert "engine.py" not in first.exc_text


async def test_a_traceback_comes_again_after_a_while(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    records = await failing(client, caplog, TRACEBACK_PERIOD + 200)
    assert sum(bool(record.exc_info) for record in records) == 2


async def test_at_level_debug_every_line_has_its_traceback(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "konverge.controller")
    records = [record for record in await failing(client, caplog, 10) if record.levelno == logging.ERROR]
    assert len(records) == 4
    assert all(record.exc_info for record in records)


def raised(error: Exception, line: str, file: str = "author.py") -> Exception:
    try:
        exec(compile(f"{line}raise error", file, "exec"), {"error": error, "__name__": "author"})
    except Exception as caught:
        return caught
    raise AssertionError


def traced(failures: Failures, error: Exception, caplog: pytest.LogCaptureFixture) -> bool:
    caplog.clear()
    failures.failed(Item(KEY, 0, (), 0.0), error, 1, 1.0)
    (record,) = caplog.records
    return bool(record.exc_info)


async def test_each_defect_has_its_own_traceback(caplog: pytest.LogCaptureFixture) -> None:
    failures = Failures("shop", "author")
    assert traced(failures, raised(ValueError("1"), ""), caplog)
    assert not traced(failures, raised(ValueError("2"), ""), caplog)  # the same defect with another value
    assert traced(failures, raised(ValueError("1"), "\n"), caplog)
    assert traced(failures, raised(KeyError("1"), ""), caplog)
    assert traced(failures, raised(ValueError("1"), "", "another.py"), caplog)
    assert not traced(failures, raised(ValueError("1"), "", "another.py"), caplog)
    assert traced(failures, ValueError("never raised"), caplog)
    assert traced(failures, ValueError("never raised either"), caplog)
    assert not traced(failures, ValueError("never raised"), caplog)
    assert traced(failures, ExceptionGroup("several", [raised(KeyError("1"), "\n\n")]), caplog)
    assert "KeyError: '1' at author.py:3" in caplog.text


async def test_the_memory_of_defects_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    failures = Failures("shop", "author")
    for number in range(3 * MAX_DEFECTS):
        traced(failures, raised(ValueError(), "\n" * number), caplog)
    assert len(failures._traced) <= MAX_DEFECTS


async def test_what_lasts_is_repeated_ever_more_seldom() -> None:
    lines, times = Repeated(), []
    for second in range(4000):
        if lines.due():
            times.append(second)
        await asyncio.sleep(1)
    assert times == [0, 10, 30, 70, 150, 310, 630, 1230, 1830, 2430, 3030, 3630]


@pytest.mark.parametrize(
    ("causes", "level", "text"),
    [
        ([StatusCause(reason="NamespaceTerminating")], logging.DEBUG, "its namespace is being deleted"),
        ([], logging.WARNING, "no leave"),
    ],
)
def test_a_refusal_is_only_silent_where_a_namespace_goes(
    causes: list[StatusCause], level: int, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "konverge.controller")
    error = Forbidden(Status(message="no leave", code=403, details=StatusDetails(causes=causes)))
    Failures("shop").transient(Item(KEY, 0, (), 0.0), error, 1, 1.0)
    (record,) = caplog.records
    assert (record.levelno, text in record.getMessage()) == (level, True)
