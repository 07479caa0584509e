"""Data that a custom resource asks to keep are there after it is deleted."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.check.inputs.asked_for import keeps_data
from konverge.check.inputs.chains import campaign
from konverge.check.model import Apply, Crash, Delete, Place, Plan, Run, Step
from konverge.check.oracles import judge
from konverge.check.oracles.retention import retention
from tests.check.oracles.histories import KEY, STEPS, THING, History, obj, reference

pytestmark = pytest.mark.spec("K-127")

CLAIM, VOLUME = "persistentvolumeclaims default/data-a-0", "persistentvolumes pv-1"
KEPT = {"deletePolicy": "Retain"}


def thing(name: str = "a", spec: dict[str, Any] | None = None) -> dict[str, Any]:
    return obj("Thing", name, spec=KEPT if spec is None else spec)


def claim(name: str = "data-a-0", **metadata: Any) -> dict[str, Any]:
    made = obj("PersistentVolumeClaim", name, spec={"volumeName": "pv-1"}, metadata=metadata)
    made["metadata"]["uid"] = f"uid of persistentvolumeclaims default/{name}"
    return made


def deleted(before: dict[str, Any], after: dict[str, Any], *, spec: Any = None, by: str = "cluster") -> Run:
    history = History(STEPS[:2]).change("ADDED", CLAIM, by=by)
    return history.rest({KEY: thing(spec=spec), CLAIM: claim(), **before}).rest(after).run


def said(run: Run) -> list[tuple[str, str, str]]:
    run.plan = Plan("reference")
    sane = reference(History(STEPS[:2]).rest().rest())
    return [(alarm.object, alarm.field, alarm.severity) for alarm in retention(run, sane)]


FOUND = [(KEY, "spec.deletePolicy", "high")]


def test_data_that_were_to_be_kept_and_are_gone() -> None:
    assert said(deleted({}, {})) == FOUND
    assert said(deleted({}, {CLAIM: claim()})) == []
    assert said(deleted({}, {}, spec={"deletePolicy": "Delete"})) == []
    assert said(deleted({}, {KEY: thing()})) == [], "it is not gone yet"


def test_a_claim_that_was_made_again_is_not_what_was_there() -> None:
    again = claim()
    again["metadata"]["uid"] = "another"
    assert said(deleted({}, {CLAIM: again})) == FOUND


def test_a_volume_that_stays_has_the_data() -> None:
    volume = obj("PersistentVolume", "pv-1")
    assert said(deleted({VOLUME: volume}, {VOLUME: volume})) == []
    assert said(deleted({VOLUME: volume}, {})) == FOUND


def test_what_the_user_made_is_not_the_operators_to_keep() -> None:
    assert said(deleted({}, {}, by="user")) == []


def test_claims_that_are_called_after_another_belong_to_that() -> None:
    """`data-a-b-0` is of `a-b`, also where there is an `a`; an owner says more than a name."""
    other = "persistentvolumeclaims default/data-a-b-0"
    key = "example.dev/things default/a-b"
    steps = (Step("create", (Apply(THING), Apply({**THING, "metadata": {"name": "a-b"}}))), STEPS[1])

    def run(**metadata: Any) -> Run:
        history = History(steps).change("ADDED", other, by="cluster")
        state = {KEY: thing(), key: thing("a-b", {}), other: claim("data-a-b-0", **metadata)}
        return history.rest(state).rest({key: state[key]}).run

    steps[0].actions[1].object["metadata"]["namespace"] = "default"  # type: ignore[union-attr]
    assert said(run()) == []
    assert said(run(ownerReferences=[{"uid": "uid-Thing-a"}])) == FOUND


BUCKET = "example.dev/buckets default/a"
POD, SET, MORE = "pods default/a-0", "apps/statefulsets default/a", "persistentvolumeclaims default/more"


def beside_a_bucket(*, asks: str, thing_has: tuple[str, ...] = (), bucket_has: tuple[str, ...] = ()) -> Run:
    """A Thing and a Bucket of one name, of which one asks to keep its data; both are deleted, and the claim goes."""
    bucket = {**THING, "kind": "Bucket"}
    gone = Delete("example.dev/v1", "Bucket", "default", "a")
    steps = (Step("create", (Apply(THING), Apply(bucket))), Step("delete", (*STEPS[1].actions, gone)))
    history = History(steps).change("ADDED", CLAIM, by="cluster")
    owners = {"Thing": thing_has, "Bucket": bucket_has}

    def owned(key: str) -> dict[str, Any]:
        return {"ownerReferences": [{"uid": f"uid-{kind}-a"} for kind, has in owners.items() if key in has]}

    state = {
        KEY: thing(spec=KEPT if asks == "Thing" else {}),
        BUCKET: obj("Bucket", spec=KEPT if asks == "Bucket" else {}),
        CLAIM: claim(**owned(CLAIM)),
        POD: obj("Pod", "a-0", metadata=owned(POD)),
        SET: obj("StatefulSet", metadata=owned(SET)),
        MORE: obj("PersistentVolumeClaim", "more", metadata=owned(MORE)),
    }
    return history.rest(state).rest({}).run


@pytest.mark.spec("K-149")
@pytest.mark.parametrize("asks", ["Thing", "Bucket"])
@pytest.mark.parametrize(
    ("thing_has", "bucket_has", "owner"),
    [
        ((CLAIM,), (), "Thing"),
        ((CLAIM,), (POD,), "Thing"),
        ((POD,), (), "Thing"),
        ((SET,), (), "Thing"),
        ((MORE,), (), "Thing"),
        ((POD,), (POD,), ""),
        ((), (), ""),
        ((CLAIM,), (CLAIM,), "both"),
    ],
)
def test_a_claim_is_not_of_a_custom_resource_of_another_kind_with_the_same_name(
    asks: str, thing_has: tuple[str, ...], bucket_has: tuple[str, ...], owner: str
) -> None:
    """It is of the one that owns it, or that owns what could use it; where that is not known, nothing is said."""
    found = said(beside_a_bucket(asks=asks, thing_has=thing_has, bucket_has=bucket_has))
    blamed = [(KEY if asks == "Thing" else BUCKET, "spec.deletePolicy", "high")]
    assert found == (blamed if owner in (asks, "both") else [])


@pytest.mark.spec("K-149")
def test_one_of_the_same_name_in_another_namespace_has_claims_of_its_own() -> None:
    far = {**THING, "metadata": {"name": "a", "namespace": "far"}}
    steps = (Step("create", (Apply(THING), Apply(far))), STEPS[1])
    state = {KEY: thing(), "example.dev/things far/a": obj("Thing", metadata={"namespace": "far", "uid": "far"})}
    assert (
        said(History(steps).change("ADDED", CLAIM, by="cluster").rest({**state, CLAIM: claim()}).rest({}).run) == FOUND
    )


@pytest.mark.spec("K-149")
def test_a_claim_that_another_owns_is_not_taken_by_its_name() -> None:
    other, key = {**THING, "metadata": {"name": "x", "namespace": "default"}}, "example.dev/things default/x"
    steps = (Step("create", (Apply(THING), Apply(other))), STEPS[1])

    def run(owner: str) -> Run:
        state = {KEY: thing(), key: thing("x", {}), CLAIM: claim(ownerReferences=[{"uid": owner}])}
        return History(steps).change("ADDED", CLAIM, by="cluster").rest(state).rest({}).run

    assert said(run("uid-Thing-x")) == []
    assert said(run("uid-Thing-a")) == said(run("somebody")) == FOUND


def test_it_is_said_of_the_undisturbed_run_and_once() -> None:
    sane = reference(
        History(STEPS[:2]).change("ADDED", CLAIM, by="cluster").rest({KEY: thing(), CLAIM: claim()}).rest()
    )
    assert [alarm.oracle for alarm in judge(sane.run, sane) if alarm.severity == "high"] == ["retention"]
    assert list(retention(deleted({}, {}), sane)) == []
    faulty = deleted({}, {})
    faulty.plan = Plan("crash", (Crash(Place("delete", "/pods", "default", "a")),))
    assert list(retention(faulty, reference(History(STEPS[:2]).rest().rest()))) == []


@pytest.mark.parametrize(
    ("spec", "asked"),
    [
        ({"deletePolicy": "Retain"}, "spec.deletePolicy: Retain"),
        ({"disks": [{"name": "a"}, {"deletionPolicy": "keep"}]}, "spec.disks.deletionPolicy: keep"),
        ({"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Retain", "whenDeleted": "Delete"}}, ""),
        ({"snapshots": {"deletePolicy": "Retain"}}, ""),
        ({"mode": "keep"}, ""),
        ({"deletePolicy": "Delete"}, ""),
        ({"databaseReclaimPolicy": "retain"}, ""),
        ({"databases": {"deletePolicy": "Retain"}}, ""),
        ({"databaseVolumeReclaimPolicy": "retain"}, "spec.databaseVolumeReclaimPolicy: retain"),
        ({"databaseStorage": {"onDelete": "keep"}}, "spec.databaseStorage.onDelete: keep"),
        ({"databaseDisk": {"onDelete": "keep"}}, "spec.databaseDisk.onDelete: keep"),
        ({"databaseClaim": {"onDelete": "keep"}}, "spec.databaseClaim.onDelete: keep"),
        ({"databasePvc": {"onDelete": "keep"}}, "spec.databasePvc.onDelete: keep"),
    ],
)
def test_where_data_are_asked_to_stay(spec: dict[str, Any], asked: str) -> None:
    assert keeps_data({"spec": spec}) == asked


def test_a_policy_is_set_and_the_custom_resource_is_deleted() -> None:
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "deletePolicy": {"type": "string", "enum": ["Delete", "Retain"], "default": "Delete"},
                    "deletionProtection": {"type": "boolean"},
                },
            }
        },
    }
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.dev"},
        "spec": {
            "group": "example.dev",
            "names": {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }

    def asking(sample: dict[str, Any]) -> list[Plan]:
        plans = campaign([sample], [definition])
        return [plan for plan in plans if (plan.steps or ())[-1].name.endswith(", deleted")]

    (plan,) = asking({**THING, "spec": {}})
    _, asked, gone = plan.steps or ()
    assert [action.object["spec"] for action in asked.actions if isinstance(action, Apply)] == [KEPT]
    assert gone.actions == (Delete("example.dev/v1", "Thing", "default", "a"),)
    assert asking({**THING, "spec": KEPT}) == [], "the workload ends with the deletion of the sample"
    (plan,) = asking({**THING, "spec": {**KEPT, "deletionProtection": True}})
    assert (plan.steps or ())[1].name == "spec.deletionProtection: off"
