"""The reports: what they say, that text of others never runs or steers, and that secrets are in none of them."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest

from konverge.check import replay
from konverge.check.model import encode
from konverge.check.names import Names
from konverge.check.report import coverage, html, junit, sarif, terminal, timeline
from konverge.check.report import json as machine
from tests.check.report.outcomes import HOSTILE, PASSWORD, outcome

FILES = ["out/finding-1.json"]


def texts() -> dict[str, str]:
    made = outcome()
    return {
        "terminal": "\n".join(terminal.lines(made, FILES)),
        "timeline": "\n".join(map(terminal.visible, timeline.lines(made.evidence[0], Names()))),
        "html": html.page(made, FILES, "1.0"),
        "json": machine.report(made, FILES, "1.0").decode(),
        "junit": junit.report(made, FILES).decode(),
        "sarif": sarif.report(made, FILES, "cr.yaml", "1.0").decode(),
        "finding": encode(replay.replay_of(made.findings[0], made.evidence[0], "1.0")).decode(),
    }


@pytest.mark.spec("K-53", "K-145")
@pytest.mark.parametrize("name", ["terminal", "timeline", "html", "json", "junit", "sarif", "finding"])
def test_no_report_has_secrets_or_what_a_terminal_obeys(name: str) -> None:
    text = texts()[name]
    assert PASSWORD not in text
    assert "b3RoZXI=" not in text
    assert "\x1b" not in text


@pytest.mark.spec("K-52")
def test_the_terminal_has_a_line_per_finding_and_what_was_not_tested() -> None:
    lines = texts()["terminal"].splitlines()
    assert lines[0].startswith("  1. high   after a crash, ")
    assert lines[0].endswith("(state, 3 runs, flaky: 2 of 3)")
    assert "            konverge check --replay out/finding-1.json" in lines
    assert "not tested: gap 4 (the budget ended; --budget gives more)" in lines
    assert "not tested: 1 plan whose moment did not come again" in lines
    assert "not compared: 1 field that varies by itself" in lines


@pytest.mark.spec("K-103")
def test_what_the_first_finding_left_out_is_not_put_down_to_the_budget() -> None:
    made = outcome()
    made.stopped = True
    assert "not tested: gap 4 (--fail-fast ended the search)" in terminal.lines(made, FILES)
    assert "4 plans: --fail-fast ended the search" in junit.report(made, FILES).decode()


@pytest.mark.spec("K-53")
def test_the_page_cannot_be_left_by_text_of_others() -> None:
    page = texts()["html"]
    assert "<img" not in page
    assert page.count("</script>") == 2, "that of the data and that of the page's own"
    assert 'http-equiv="Content-Security-Policy" content="default-src \'none\'' in page
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", page), "nothing is fetched"
    assert "innerHTML" not in page
    embedded = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert embedded is not None
    shown = json.loads(embedded[1])
    assert shown["findings"][0]["sentence"] == f"after a crash, {HOSTILE}"


@pytest.mark.spec("K-53")
def test_the_page_has_the_fault_and_where_the_runs_part() -> None:
    [finding] = html.data(outcome(), FILES, "1.0")["findings"]
    lanes = finding["lanes"]
    assert lanes.lanes == ["user", "operator 1", "operator 2", "controllers", "pods"]
    assert [(event.lane, event.sign, event.mark) for event in lanes.events] == [
        ("operator 1", "+", "crash after it"),
        ("operator 2", "~", ""),
    ]
    assert (finding["divergence"].run, finding["divergence"].extra) == (1, True)
    changed = finding["resource"][1]["objects"][0]
    assert changed["diff"] == [("spec.text", HOSTILE, "b")]


@pytest.mark.spec("K-52")
def test_machines_read_the_same_findings() -> None:
    made = texts()
    [finding] = json.loads(made["json"])["findings"]
    assert (finding["oracle"], finding["object"], finding["field"]) == (
        "state",
        "secrets default/login",
        "data.password",
    )
    assert finding["replay"] == FILES[0]
    suite = ElementTree.fromstring(made["junit"])
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("4", "1", "1")
    assert len(suite.findall("testcase/failure")) == 1
    [result] = json.loads(made["sarif"])["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("state", "error")
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "cr.yaml"


@pytest.mark.spec("K-52")
def test_coverage_says_what_was_hit_by_what() -> None:
    tables = {table.title: table for table in coverage.tables(outcome())}
    [write] = tables["Writes"].rows
    assert write.name == "creating ConfigMap first"
    assert write.cells == {"crash after": "finding", "crash before": "not tried", "refused": "not tried"}
    [field] = tables["Fields of the custom resource"].rows
    assert (field.name, field.cells) == ("spec.text", {"state": "finding"})
