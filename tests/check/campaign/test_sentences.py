"""Perturbations in words, by what surrounds them in the undisturbed run."""

from __future__ import annotations

import pytest

from konverge.check.differences import Masks
from konverge.check.model import (
    Alarm,
    Change,
    Crash,
    Edit,
    Exchange,
    Gap,
    LateOwnWrites,
    Moment,
    OperatorAway,
    Perturbation,
    Place,
    Plan,
    Ref,
    Refuse,
    Run,
    Stale,
    Step,
    TimePasses,
)
from konverge.check.names import Names
from konverge.check.reference import Reference
from konverge.check.sentences import sentence

DELETE = Place("delete", "apps/statefulsets", "default", "rabbit-server")
RESIZE = Place("update", "/persistentvolumeclaims", "default", "data-0", "spec.resources.requests.storage")
CREATE = Place("patch", "apps/statefulsets", "default", "rabbit-server")
RELEASE = Place("patch", "rabbitmq.com/rabbitmqclusters", "default", "rabbit", "metadata.finalizers")
PLACES = ((DELETE, 0, "DELETED"), (RESIZE, 0, "MODIFIED"), (CREATE, 1, "ADDED"), (RELEASE, 1, "DELETED"))
NAMES = Names({"rabbitmq.com/rabbitmqclusters": "RabbitmqCluster"})
ALARM = Alarm(
    oracle="state",
    severity="high",
    object="persistentvolumeclaims default/data-0",
    sentence="persistentvolumeclaims default/data-0 stays at 10Gi for ever",
    step="grow",
)


def reference() -> Reference:
    run = Run(plan=Plan("reference"), seed=0, steps=(Step("grow", ()), Step("delete", ())))
    for revision, (place, step, kind) in enumerate(PLACES):
        run.exchanges.append(
            Exchange(
                number=revision,
                incarnation=1,
                verb=place.verb,
                resource=place.resource,
                namespace=place.namespace,
                name=place.name,
                status=200,
                began=0.0,
                revision=revision,
                revisions=(revision,),
                place=place,
            )
        )
        ref = Ref(place.resource, place.namespace, place.name)
        moment = Moment(kind, place.resource, place.namespace, place.name, place.change)  # type: ignore[arg-type]
        run.changes.append(
            Change(revision=revision, time=0.0, moment=moment, ref=ref, uid="", writer="operator", step=step)
        )
    return Reference(run=run, masks=Masks())


CHANGED = Moment("MODIFIED", "rabbitmq.com/rabbitmqclusters", "default", "rabbit", "spec.replicas")
GONE = Moment("DELETED", "rabbitmq.com/rabbitmqclusters", "default", "rabbit")
STATEFUL = Ref("apps/statefulsets", "default", "rabbit-server")


@pytest.mark.spec("K-47")
@pytest.mark.parametrize(
    ("perturbation", "said"),
    [
        (Crash(DELETE), "after a crash between deleting StatefulSet rabbit-server and resizing claim data-0"),
        (Crash(RESIZE), "after a crash right after resizing claim data-0"),  # what follows is in another step
        (
            Crash(CREATE),
            "after a crash between creating StatefulSet rabbit-server and removing the last finalizer of "
            "RabbitmqCluster rabbit",
        ),
        (Crash(CREATE, "before"), "after a crash right before creating StatefulSet rabbit-server"),
        (Refuse(RESIZE, "conflict"), "when resizing claim data-0 is answered by a conflict"),
        (
            Refuse(Place("get", "/secrets", "", ""), "error"),
            "when reading Secret objects is answered by an internal error",
        ),
        (Refuse(Place("list", "/pods", "", ""), "error"), "when listing pod objects is answered by an internal error"),
        (Edit(STATEFUL, None, 0), "after another client deletes StatefulSet rabbit-server"),
        (
            Edit(STATEFUL, {"metadata": {"labels": None}, "spec": {"replicas": 0}}, 0),
            "after another client changes metadata.labels, spec.replicas of StatefulSet rabbit-server",
        ),
        (LateOwnWrites("apps/statefulsets"), "when the operator sees its own writes of StatefulSet 5 s late"),
        (
            Stale("rabbitmq.com/rabbitmqclusters", GONE, CHANGED),
            "after a restart (once spec.replicas of RabbitmqCluster rabbit changed) whose cache shows RabbitmqCluster "
            "as it was right after RabbitmqCluster rabbit was deleted",
        ),
        (
            Gap("rabbitmq.com/rabbitmqclusters", CHANGED, GONE),
            "when the operator never sees the time between “spec.replicas of RabbitmqCluster rabbit changed” and "
            "“RabbitmqCluster rabbit was deleted”",
        ),
        (TimePasses(0, 3600.0, away=True), "after the API server was away for 60 min"),
        (OperatorAway(0, 0), "after the operator was away during “grow”"),
        (OperatorAway(0, 1), "after the operator was away during “grow” to “delete”"),
    ],
)
def test_a_perturbation_in_words(perturbation: Perturbation, said: str) -> None:
    plan = Plan("crash", (perturbation,))
    assert sentence(plan, ALARM, (), reference(), NAMES) == f"{said}, claim data-0 stays at 10Gi for ever"
