"""Livelocks, and writes that change nothing."""

from __future__ import annotations

import pytest

from konverge.check.oracles.rest import LAST, needless, no_rest
from tests.check.oracles.histories import KEY, History, reference

CONFIG = "configmaps default/a"


@pytest.mark.spec("K-33")
def test_a_step_that_never_comes_to_rest_is_shown_with_its_cycle() -> None:
    sane = reference(History().change("ADDED", CONFIG).rest())
    history = History().change("ADDED", CONFIG)
    for value in range(5):
        history.change("MODIFIED", CONFIG, ("data.a", value, value + 1))
        history.change("MODIFIED", KEY, ("status.count", value, value + 1))
    (alarm,) = no_rest(history.rest(rested=False).run, sane)
    assert alarm.severity == "high"
    assert "operator changes configmaps default/a (data.a) → operator changes example.dev/things" in alarm.sentence
    assert list(no_rest(sane.run, sane)) == []


@pytest.mark.spec("K-33")
def test_unrest_is_as_bad_as_what_the_operator_does_in_it() -> None:
    def severity(*changes: tuple[str, str, str], times: int = 5) -> str:
        history = History().change("ADDED", CONFIG)
        for number in range(times):
            for by, key, path in changes:
                history.change("MODIFIED", key, (path, number, number + 1), by=by)
        (alarm,) = no_rest(history.rest(rested=False).run, reference(History().change("ADDED", CONFIG).rest()))
        return alarm.severity

    pod = ("cluster", "pods default/a", "status.phase")
    assert severity(("operator", CONFIG, "data.a")) == "high"
    assert severity(("operator", KEY, "status.count")) == "medium"
    assert severity(pod) == "low", "the cluster tries again by itself"
    assert severity(pod, ("operator", CONFIG, "data.a")) == "high"
    assert severity(*[("operator", CONFIG, f"data.{number}") for number in range(9)], times=1) == "medium", "slow"
    long_ago = [("operator", CONFIG, "data.a"), *[("cluster", CONFIG, f"data.{number}") for number in range(LAST)]]
    assert severity(*long_ago, times=1) == "low"
    assert severity(*long_ago[:-1], times=1) == "medium"


@pytest.mark.spec("K-33")
def test_reads_alone_are_high() -> None:
    (alarm,) = no_rest(History().rest(rested=False).run, reference(History().rest()))
    assert (alarm.severity, alarm.object) == ("high", "operator")


@pytest.mark.spec("K-33")
def test_a_livelock_of_the_reference_is_said_of_the_reference_alone() -> None:
    restless = reference(History().change("ADDED", CONFIG).rest(rested=False))
    assert len(list(no_rest(restless.run, restless))) == 1
    assert list(no_rest(History().change("ADDED", CONFIG).rest(rested=False).run, restless)) == []


@pytest.mark.spec("K-34")
@pytest.mark.parametrize(("times", "severity"), [(3, ["low"]), (90, ["medium"]), (1, [])])
def test_writes_at_rest_that_change_nothing_are_counted(times: int, severity: list[str]) -> None:
    history = History().change("ADDED", CONFIG)
    for _ in range(times):
        history.request("update", CONFIG).request("create", "authorization.k8s.io/selfsubjectaccessreviews *")
    sane = reference(history.rest(quiet=1.0))
    found = list(needless(sane.run, sane))
    assert [alarm.severity for alarm in found] == severity
    assert [alarm.actual for alarm in found] == [times] * len(severity)


@pytest.mark.spec("K-34")
def test_writes_before_the_last_change_and_refused_ones_do_not_count() -> None:
    history = History().request("update", CONFIG).request("update", CONFIG).change("ADDED", CONFIG)
    history.request("update", CONFIG, status=409).request("update", CONFIG, status=409).rest()
    assert list(needless(history.run, reference(history))) == []


@pytest.mark.spec("K-34")
def test_far_more_requests_than_usual_are_said() -> None:
    sane = reference(History().rest())
    sane.run.reads = {"get /pods": 40}
    storm = History().rest().run
    storm.reads = {"get /pods": 9000, "list /pods": 1}
    assert [alarm.field for alarm in needless(storm, sane)] == ["get /pods"]
