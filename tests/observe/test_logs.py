"""Logs know which reconcile they belong to; levels change at run time."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from konverge.observe import logs

pytestmark = pytest.mark.spec("R-31")


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    level = logging.getLogger().level
    yield stream
    for handler in list(logging.getLogger().handlers):
        if isinstance(handler, logging.StreamHandler) and handler.stream is stream:
            logging.getLogger().removeHandler(handler)
    logging.getLogger(logs.ROOT).setLevel(logging.NOTSET)
    logging.getLogger().setLevel(level)


def test_json_lines_name_the_reconcile(stream: io.StringIO) -> None:
    logs.set_up("info", "json", stream)
    token = logs.scope.set(logs.Scope("webapp", "shop/web", 7))
    logging.getLogger("konverge.x").info("scaled to %d", 3)
    logs.scope.reset(token)
    line = json.loads(stream.getvalue())
    assert (line["controller"], line["object"], line["reconcileID"]) == ("webapp", "shop/web", "7")
    assert (line["level"], line["msg"]) == ("info", "scaled to 3")


def test_text_lines_name_the_reconcile(stream: io.StringIO) -> None:
    logs.set_up("info", "text", stream)
    try:
        raise ValueError("oops")
    except ValueError:
        logging.getLogger("konverge.x").exception("failed")
    text = stream.getvalue()
    assert "ERROR   failed\n" in text
    assert text.endswith("ValueError: oops\n")


def test_the_log_level_can_be_changed_at_run_time(stream: io.StringIO) -> None:
    logs.set_up("warning", "text", stream)
    logger = logging.getLogger("konverge.x")
    logger.info("not shown")
    logs.set_level("debug")
    logger.debug("shown")
    assert "not shown" not in stream.getvalue()
    assert "shown" in stream.getvalue()
    with pytest.raises(ValueError, match="use debug, info"):
        logs.set_level("loud")


def test_the_object_is_named_once(stream: io.StringIO) -> None:
    logs.set_up("info", "text", stream)
    token = logs.scope.set(logs.Scope("webapp", "shop/web", 7))
    logging.getLogger("konverge.x").info("%s %s: %s", "webapp", "shop/web", "failed")
    logs.scope.reset(token)
    assert stream.getvalue().endswith("INFO    webapp shop/web [7] failed\n")


@pytest.mark.spec("O-60")
def test_lines_of_the_operators_own_modules_are_shown(stream: io.StringIO) -> None:
    logs.set_up("info", "text", stream)
    logging.getLogger("my_operator").info("mine")
    logging.getLogger("my_operator").debug("not shown")
    assert stream.getvalue().endswith("INFO    mine\n")


@pytest.mark.spec("O-60")
@pytest.mark.parametrize("terminal", [True, False])
def test_the_form_fits_the_stream(stream: io.StringIO, terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "isatty", lambda: terminal)
    logs.set_up("info", "", stream)
    logging.getLogger("konverge.x").info("here")
    assert stream.getvalue().startswith("{") is not terminal


@pytest.mark.spec("O-60")
def test_logs_that_are_set_up_stay_as_they_are(stream: io.StringIO) -> None:
    logs.set_up("info", "text", stream)
    before = list(logging.getLogger().handlers)
    assert logs.set_up_unless_done("debug", "json") is None
    assert logging.getLogger().handlers == before
