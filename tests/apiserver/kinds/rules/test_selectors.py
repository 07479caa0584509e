"""Label selectors."""

from __future__ import annotations

from konverge.apiserver.kinds.framework.declare import Report
from konverge.apiserver.kinds.rules.selectors import label_selector, selects


def test_selectors_are_checked_and_select() -> None:
    report = Report()
    selector = {"matchExpressions": [{"key": "a", "operator": "In"}, {"key": "b", "operator": "Near"}]}
    label_selector(selector, "s", report)
    assert [str(error) for error in report.errors] == [
        "s.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
        's.matchExpressions[1].operator: Invalid value: "Near": not a valid selector operator',
    ]
    assert selects({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, {})
    assert not selects({"matchLabels": {"a": "1"}}, {"a": "2"})
