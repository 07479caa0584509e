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
    yield stream
    for handler in list(logging.getLogger().handlers):
        if isinstance(handler, logging.StreamHandler) and handler.stream is stream:
            logging.getLogger().removeHandler(handler)
    logging.getLogger(logs.ROOT).setLevel(logging.NOTSET)


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
