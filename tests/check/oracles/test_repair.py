"""What is not as it was after others have deleted it: data, and what was given once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from konverge.check.model import Edit
from konverge.check.oracles import judge
from konverge.check.plans.edits import edits
from tests.check.oracles.histories import KEY, History, obj, ref, reference

VOLUME, CLAIM = "cdi.example.dev/volumes default/a", "persistentvolumeclaims default/a"
SERVICE, TAKEN = "services default/a", "example.dev/thingsnapshots default/a"
OWNER = [{"kind": "Thing", "name": "a", "uid": "uid-thing"}]
WELL = [{"type": "Ready", "status": "True"}, {"type": "VolumesBound", "status": "True"}]
GIVEN = {"loadBalancer": {"ingress": [{"ip": "10.0.0.7"}, {"ip": "10.0.0.8"}]}}


def thing(conditions: list[dict[str, Any]]) -> dict[str, Any]:
    return obj("Thing", apiVersion="example.dev/v1", metadata={"uid": "uid-thing"}, status={"conditions": conditions})


def state(conditions: list[dict[str, Any]] | None = None, other: dict[str, Any] | None = None) -> dict[str, Any]:
    """All is there; `other` objects are as they are given, None for what is missing."""
    volume = obj("Volume", apiVersion="cdi.example.dev/v1", metadata={"uid": "uid-volume", "ownerReferences": OWNER})
    mine = [{"kind": "Volume", "name": "a", "uid": "uid-volume"}]
    claim = obj("PersistentVolumeClaim", apiVersion="v1", metadata={"ownerReferences": mine}, spec={"size": 1})
    service = obj("Service", apiVersion="v1", spec={"type": "LoadBalancer"}, status=GIVEN)
    taken = obj("ThingSnapshot", apiVersion="example.dev/v1", metadata={"ownerReferences": OWNER})
    found = {KEY: thing(conditions or WELL), VOLUME: volume, CLAIM: claim, SERVICE: service, TAKEN: taken}
    return {key: value for key, value in (found | (other or {})).items() if value is not None}


def made(**plan: Any) -> History:
    history = History(pattern="edits", **plan).change("ADDED", KEY, by="user")
    for key in (VOLUME, SERVICE, TAKEN):
        history.change("ADDED", key)
    return history.change("ADDED", CLAIM, by="cluster")


SANE = reference(made().rest(state()))


def judged(deleted: str, shown: dict[str, Any]) -> dict[tuple[str, str], str]:
    run = made(perturbations=(Edit(ref(deleted), None, 0),)).change("DELETED", deleted, by="user").rest(shown).run
    return {(alarm.object, alarm.field): alarm.severity for alarm in judge(run, SANE) if alarm.oracle == "state"}


def going(**spec: Any) -> dict[str, Any]:
    metadata = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    return obj("PersistentVolumeClaim", apiVersion="v1", metadata=metadata, spec={"size": 1, **spec})


TOLD = [WELL[0], {"type": "VolumesBound", "status": "False"}]


@pytest.mark.spec("K-106")
def test_a_claim_that_waits_for_its_pods_keeps_what_owned_it_from_coming_back() -> None:
    told = judged(VOLUME, state(TOLD, {VOLUME: None, CLAIM: going(size=2)}))
    assert (VOLUME, "") in told
    assert (CLAIM, "metadata.deletionTimestamp") in told
    assert (KEY, "status.conditions[VolumesBound].status") in told
    assert set(told.values()) == {"low"}
    silent = judged(VOLUME, state(other={VOLUME: None, CLAIM: going()}))
    assert silent[VOLUME, ""] == "high", "the custom resource says that all is well"
    gone = judged(VOLUME, state(TOLD, {VOLUME: None, CLAIM: None}))
    assert gone[VOLUME, ""] == "high", "nothing is in the way any more"
    assert gone[CLAIM, ""] == "low", "its data is gone with what others deleted"
    service = judged(SERVICE, state(TOLD, {SERVICE: None}))
    assert service[SERVICE, ""] == "high", "it can be made again, whatever the custom resource says"
    theirs = judged(SERVICE, state(TOLD, {SERVICE: None, CLAIM: going()}))
    assert theirs[SERVICE, ""] == "high", "the claim has nothing to do with it"


@pytest.mark.spec("K-106")
def test_other_objects_that_differ_are_no_less_bad() -> None:
    shown = state(TOLD, {VOLUME: None, CLAIM: going(), SERVICE: None})
    assert judged(VOLUME, shown)[SERVICE, ""] == "high"


@pytest.mark.spec("K-106")
def test_what_was_taken_at_a_moment_is_not_taken_again_and_that_is_said() -> None:
    lost = [{"type": "Ready", "status": "False"}, WELL[1]]
    assert judged(TAKEN, state(lost, {TAKEN: None}))[TAKEN, ""] == "low"
    assert judged(TAKEN, state(other={TAKEN: None}))[TAKEN, ""] == "high", "all is well, it says"


@pytest.mark.spec("K-107")
@pytest.mark.parametrize(
    ("spec", "severity"),
    [
        ({"loadBalancerIP": "10.0.0.8"}, "low"),
        ({"loadBalancerIP": "10.0.0.9"}, "medium"),
        ({"type": "10.0.0.8"}, "medium"),
    ],
    ids=["the same", "another", "what was not absent"],
)
def test_what_is_made_again_may_ask_for_what_it_had_been_given(spec: dict[str, Any], severity: str) -> None:
    again = obj("Service", apiVersion="v1", spec={"type": "LoadBalancer", **spec}, status=GIVEN)
    (field,) = spec
    assert judged(SERVICE, state(other={SERVICE: again})) == {(SERVICE, f"spec.{field}"): severity}
    kept = judged(VOLUME, state(other={SERVICE: again}))
    assert kept == {(SERVICE, f"spec.{field}"): "medium"}, "nobody has deleted it"


@pytest.mark.spec("K-108")
def test_finalizers_of_other_controllers_are_not_the_operators_to_put_back() -> None:
    found = state()
    for key in (VOLUME, TAKEN):
        found[key]["metadata"]["finalizers"] = ["x"]
    history = made().change("MODIFIED", TAKEN, ("metadata.finalizers", "<absent>", ["x"]), by="cluster")
    history.change("MODIFIED", TAKEN, ("status.phase", "<absent>", "Done"), by="cluster")
    history.change("MODIFIED", VOLUME, ("status.phase", "<absent>", "Done"), by="cluster")
    taking = [
        str(item.ref)
        for plan in edits(reference(history.rest(found)))
        for item in plan.perturbations
        if isinstance(item, Edit) and item.patch == {"metadata": {"finalizers": None}}
    ]
    assert taking == [VOLUME]


@pytest.mark.spec("K-114")
@pytest.mark.parametrize(
    ("annotations", "field", "severity"),
    [
        ({"example.dev/scaled": "yes"}, "metadata.annotations", "low"),
        ({"example.dev/scaled": "yes", "other.dev/note": "1"}, "metadata.annotations", "medium"),
        ({"other.dev/note": "1"}, "metadata.annotations", "medium"),
        ({"more.example.dev/scaled": "yes"}, "metadata.annotations", "medium"),
        ({"size": "1", "example.dev/scaled": "yes"}, "metadata.annotations.example.dev/scaled", "low"),
        ({"size": "1", "other.dev/note": "1"}, "metadata.annotations.other.dev/note", "medium"),
    ],
)
def test_what_the_operator_notes_of_what_others_did_is_a_note(
    annotations: dict[str, str], field: str, severity: str
) -> None:
    def with_notes(notes: dict[str, str]) -> dict[str, Any]:
        metadata = {"annotations": notes} if notes else {}
        return state(other={SERVICE: obj("Service", apiVersion="v1", metadata=metadata, status=GIVEN)})

    before = {key: value for key, value in annotations.items() if key == "size"}
    usual = reference(made().rest(with_notes(before)))

    def severity_of(pattern: str) -> str:
        history = made(perturbations=(Edit(ref(VOLUME), None, 0),)).rest(with_notes(annotations))
        run = history.run
        run.plan = msgspec.structs.replace(run.plan, pattern=pattern)
        (alarm,) = [item for item in judge(run, usual) if item.oracle == "state"]
        assert (alarm.object, alarm.field) == (SERVICE, field)
        return alarm.severity

    assert severity_of("edits") == severity
    assert severity_of("crash") == "medium", "nobody else has done anything"
    usual, annotations = reference(made().rest(with_notes(annotations))), before
    assert severity_of("edits") == "medium", "a note that is lost"
