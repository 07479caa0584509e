"""The text that Prometheus scrapes, and what the numbers of an author can do to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.parser import text_string_to_metric_families

from konverge.observe.exposition import render
from konverge.observe.metrics import ControllerNumbers, Numbers

pytestmark = pytest.mark.spec("R-28")


def scraped(numbers: Numbers) -> dict[str, float]:
    families = text_string_to_metric_families(render(numbers).decode())
    return {sample.name: sample.value for family in families for sample in family.samples}


def cakes() -> Iterable[Any]:
    return [GaugeMetricFamily("cakes", "Cakes baked", value=3)]


def raises_at_once() -> Iterable[Any]:
    raise LookupError("no oven")


def raises_later() -> Iterator[Any]:
    yield GaugeMetricFamily("half", "Half of the truth", value=1)
    raise LookupError("no oven")


def gives_nonsense() -> Iterable[Any]:
    return [GaugeMetricFamily("good", "A number", value=1), "bad"]


def gives_no_number() -> Iterable[Any]:
    return [GaugeMetricFamily("words", "Not a number", value="many")]  # type: ignore[arg-type]


@pytest.mark.parametrize("broken", [raises_at_once, raises_later, gives_nonsense, gives_no_number, lambda: None])
def test_numbers_of_an_author_that_fail_cost_only_themselves(broken: Any, caplog: pytest.LogCaptureFixture) -> None:
    controller = ControllerNumbers("c", 3)
    numbers = Numbers(controllers=[controller], more=[broken, cakes], leaders={"op": lambda: True})
    for _ in range(3):
        samples = scraped(numbers)
        assert samples["controller_runtime_max_concurrent_reconciles"] == 3
        assert (samples["cakes"], samples["leader_election_master_status"]) == (3, 1)
        assert not {"half", "good", "words"} & samples.keys()
    assert [record.name for record in caplog.records] == ["konverge.metrics"]  # once, and not at every scrape
    assert caplog.records[0].exc_info


def test_numbers_that_can_be_had_again_are_there_and_their_next_failure_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    working = False

    def sometimes() -> Iterable[Any]:
        return cakes() if working else raises_at_once()

    numbers = Numbers(more=[sometimes])
    assert "cakes" not in scraped(numbers)
    working = True
    assert scraped(numbers)["cakes"] == 3
    working = False
    assert "cakes" not in scraped(numbers)
    assert len(caplog.records) == 2
