"""The fixture `konverge_check`: a check as a test, and what its assertion says."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from konverge.check.campaign import CouldNotTest
from konverge.testing import CheckResult, KonvergeCheck
from konverge.testing.checks import importable
from tests.check.campaign import keeper
from tests.check.report.outcomes import outcome

pytestmark = pytest.mark.spec("K-54")


def test_an_operator_without_findings(konverge_check: KonvergeCheck) -> None:
    result = konverge_check(keeper.manager, sample=keeper.SAMPLE, only=["crash"])
    result.assert_no_findings()
    assert result.outcome.performed


async def test_findings_are_in_the_assertion_also_in_an_async_test(konverge_check: KonvergeCheck) -> None:
    result = konverge_check(keeper.wrong, sample=[keeper.SAMPLE], only=["crash"])
    with pytest.raises(AssertionError) as failed:
        result.assert_no_findings()
    text = str(failed.value)
    assert "after a crash between creating ConfigMap note-first and creating ConfigMap note-second" in text
    assert f"konverge check --replay {result.files[0]}" in text
    assert result.findings[0].task.subject.target == "tests.check.campaign.keeper:wrong"


def test_an_operator_of_the_test_itself_is_seen_again_by_the_test(
    konverge_check: KonvergeCheck, request: pytest.FixtureRequest
) -> None:
    controllers = list(keeper.wrong.controllers)
    result = konverge_check(lambda: controllers, sample=keeper.SAMPLE, only=["crash"])
    with pytest.raises(AssertionError, match="again: pytest") as failed:
        result.assert_no_findings()
    assert repr(request.node.nodeid) in str(failed.value)


def test_mild_findings_may_be_let_through() -> None:
    found = outcome()
    found.findings[0].alarm = msgspec.structs.replace(found.findings[0].alarm, severity="low")
    result = CheckResult(found, [Path("finding-1.json")], "")
    result.assert_no_findings(at_least="medium")
    with pytest.raises(AssertionError, match="--replay"):
        result.assert_no_findings()


def test_what_cannot_be_tested_is_no_success(konverge_check: KonvergeCheck, tmp_path: Path) -> None:
    sample = tmp_path / "cr.yaml"
    sample.write_text("{apiVersion: example.com/v1, kind: Kept, metadata: {name: note}}")
    with pytest.raises(CouldNotTest, match="wrote nothing"):
        konverge_check(keeper.idle, sample=str(sample))


def test_where_an_operator_is_found_again() -> None:
    assert importable(keeper.manager) == "tests.check.campaign.keeper:manager"
    assert importable(lambda: keeper.manager) == ""
