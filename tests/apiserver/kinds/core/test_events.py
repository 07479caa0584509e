"""The two forms of an Event hold the same values."""

from __future__ import annotations

import pytest

from konverge.apiserver.kinds.core.events import from_core, to_core
from konverge.apiserver.kinds.framework.conversion import conversion
from tests.apiserver.api import Api

CORE = {
    "metadata": {"name": "e", "namespace": "default"},
    "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
    "reason": "R",
    "message": "m",
    "source": {"component": "c"},
    "firstTimestamp": "2020-01-01T00:00:00Z",
    "lastTimestamp": None,
    "count": 2,
    "type": "Normal",
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}


@pytest.mark.spec("S-09")
def test_an_event_is_converted_to_the_new_form_and_back() -> None:
    seen = from_core(dict(CORE))
    assert seen["regarding"] == CORE["involvedObject"]
    assert seen["note"] == "m"
    assert seen["deprecatedCount"] == 2
    assert "reportingController" not in seen
    assert to_core(seen) == CORE


@pytest.mark.spec("S-09")
def test_refusals_name_the_stored_kind() -> None:
    form = conversion("events.k8s.io", "v1", "Event")
    assert form is not None
    assert (form.table, form.reported_group) == ("/events", "")
    assert conversion("apps", "v1", "Deployment") is None


@pytest.mark.spec("S-03")
async def test_both_forms_are_stored_together(api: Api) -> None:
    body = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default", "kind": "Pod"}, "reason": "R"}
    await api.call("POST", "/api/v1/namespaces/default/events", body)
    path = "/apis/events.k8s.io/v1/namespaces/default/events"
    seen = await api.call("GET", path, query={"fieldSelector": "regarding.kind=Pod"})
    assert [event["regarding"]["kind"] for event in seen["items"]] == ["Pod"]
    assert seen["items"][0]["reason"] == "R"
