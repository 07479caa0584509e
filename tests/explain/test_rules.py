"""The rules one by one, for what a simulated cluster cannot produce: messages of upstream, states that pass quickly."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.explain import Explainer, Health, Ref, World
from konverge.explain.refusals import refusal
from konverge.explain.scheduling import condense
from konverge.explain.texts import listed, printable, shorten
from tests.explain.samples import obj

pytestmark = pytest.mark.spec("O-81")
NOW = 1_767_225_600.0  # 2026-01-01T00:00:00Z
OLD, NEW = "2025-12-31T00:00:00Z", "2025-12-31T23:59:55Z"


def explained(subject: dict[str, Any], *others: dict[str, Any], **options: Any) -> Any:
    subject["metadata"].setdefault("creationTimestamp", OLD)
    subject["metadata"].setdefault("uid", "subject")
    return Explainer(World([subject, *others], now=NOW, **options)).why(Ref.of(subject))


def conditions(**states: tuple[str, str]) -> dict[str, Any]:
    return {"conditions": [{"type": name, "status": state[0], "message": state[1]} for name, state in states.items()]}


@pytest.mark.parametrize(
    ("message", "cause", "part"),
    [
        (
            'pods "a" is forbidden: exceeded quota: q, requested: cpu=1, used: cpu=3, limited: cpu=3',
            "quota",
            "ResourceQuota `q` would be exceeded: cpu=1 requested, cpu=3 used, cpu=3 allowed",
        ),
        (
            'pods "a" is forbidden: failed quota: q: must specify limits.cpu for: main; limits.memory for: main',
            "quota",
            "ResourceQuota `q` asks for limits.cpu, which is not set",
        ),
        (
            'pods "a" is forbidden: [minimum memory usage per Pod is 1Gi, but request is 1Mi, other]',
            "limit-range",
            "minimum memory usage per Pod is 1Gi, but request is 1Mi",
        ),
        (
            'admission webhook "guard.example.com" denied the request: no latest tags',
            "webhook-refuses",
            "admission webhook `guard.example.com` refuses: no latest tags",
        ),
        (
            'failed calling webhook "g.example.com": failed to call webhook: Post "https://g": EOF',
            "webhook-away",
            "admission webhook `g.example.com` does not answer: failed to call webhook",
        ),
        (
            "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: too many",
            "policy-refuses",
            "admission policy `p` refuses: too many",
        ),
        (
            'pods "a" is forbidden: violates PodSecurity "restricted:latest": privileged (container "c")',
            "pod-security",
            "namespace enforces PodSecurity `restricted:latest`: privileged",
        ),
        ("no PriorityClass with name high was found", "missing-priority-class", "priority class `high` does not exist"),
        (
            'User "system:serviceaccount:ops:robot" cannot list resource "secrets" in API group "" at the cluster',
            "no-permission",
            "operator (ops/robot) may not list secrets",
        ),
        (
            'User "jane" cannot patch resource "deployments/scale" in API group "apps" in the namespace "n"',
            "no-permission",
            "operator (jane) may not patch deployments/scale.apps in namespace n",
        ),
        (
            'Deployment.apps "web" is invalid: spec.selector: Invalid value: {}: field is immutable',
            "immutable-field",
            "field `spec.selector` cannot be changed once it is set",
        ),
    ],
)
def test_why_the_api_server_refuses(message: str, cause: str, part: str) -> None:
    verdict = refusal(message, "n", World([]))
    assert verdict is not None
    assert (verdict.health, verdict.cause) == (Health.WAITING, cause)
    assert part in verdict.whose


def test_other_messages_are_no_refusal() -> None:
    assert (
        refusal("the object has been modified; please apply your changes to the latest version", "n", World([])) is None
    )


def test_a_webhook_whose_service_selects_nothing_is_followed_to_the_service() -> None:
    hook = {"name": "g.example.com", "clientConfig": {"service": {"name": "guard", "namespace": "sys"}}}
    failed = ("True", 'failed calling webhook "g.example.com": no endpoints')
    web = obj("ReplicaSet", "web", {"replicas": 1}, status=conditions(ReplicaFailure=failed))
    answer = explained(
        web,
        obj("ValidatingWebhookConfiguration", "g", namespace="", webhooks=[hook]),
        obj("Service", "guard", {"selector": {"app": "guard"}}, namespace="sys"),
    )
    assert answer.sentence == (
        "ReplicaSet web waits: its admission webhook `g.example.com` does not answer, "
        "since Service guard selects no pod (app=guard)"
    )


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ("no nodes available to schedule pods", "finds no node: the cluster has none"),
        (
            "0/1 nodes are available: 1 Too many pods.",
            "does not fit on the only node: 1 has no room for another pod",
        ),
        (
            "0/4 nodes are available: 1 node(s) had untolerated taint {a: b, c}, "
            "1 node(s) didn't match pod anti-affinity rules, 2 node(s) had volume node affinity conflict. "
            "preemption: 0/4 nodes are available: 4 No.",
            "fits on none of 4 nodes: 1 has the taint {a: b, c}, which it does not tolerate, "
            "1 has a pod beside which it must not run, 2 have no access to its volume",
        ),
        ("0/2 nodes are available: 2 something new.", "fits on none of 2 nodes: 2 something new"),
        ("custom scheduler says no", "cannot be scheduled: custom scheduler says no"),
    ],
)
def test_the_schedulers_message_is_condensed(message: str, says: str) -> None:
    assert condense(message) == says


def pod(state: dict[str, Any], **more: Any) -> dict[str, Any]:
    status = {"phase": "Running", "containerStatuses": [{"name": "main", "ready": False, **state}]}
    return obj("Pod", "p", {"nodeName": "n1", "containers": [{"name": "main", "image": "i"}]}, status=status | more)


NODE = obj("Node", "n1", namespace="", status=conditions(Ready=("True", "")))


@pytest.mark.parametrize(
    ("state", "cause", "part"),
    [
        ({"state": {"terminated": {"exitCode": 143}}}, "crash-loop", "is ended by signal 15 (exit code 143)"),
        (
            {"state": {"waiting": {"reason": "RunContainerError", "message": "no such file: /run"}}},
            "container-start",
            "cannot start container main: no such file: /run",
        ),
        (
            {"state": {"waiting": {"reason": "CreateContainerConfigError", "message": "host IP unknown"}}},
            "container-config",
            "cannot configure container main: host IP unknown",
        ),
        (
            {
                "restartCount": 2,
                "state": {"running": {}},
                "lastState": {"terminated": {"exitCode": 9, "message": "bye"}},
            },
            "crash-loop",
            "container main was restarted 2 times, it exits with code 9: bye",
        ),
        (
            {
                "restartCount": 5,
                "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
            },
            "out-of-memory",
            "container main needs more memory than it may have (OOMKilled, exit code 137) (restarted 5 times)",
        ),
        ({"state": {"running": {"startedAt": OLD}}}, "probe", "is not ready: container main runs"),
    ],
)
def test_containers(state: dict[str, Any], cause: str, part: str) -> None:
    answer = explained(pod(state), NODE)
    assert (answer.cause, part in answer.sentence) == (cause, True), answer.sentence


def test_a_container_that_has_just_begun_is_given_time() -> None:
    answer = explained(pod({"state": {"running": {"startedAt": NEW}}}), NODE)
    assert (answer.health, answer.cause) == (Health.PROGRESSING, "")


def test_a_pod_on_a_node_that_is_gone() -> None:
    answer = explained(pod({"state": {"running": {}}}))
    assert answer.sentence == "pod p waits: its node `n1` does not exist"


def test_an_evicted_pod_and_a_readiness_gate() -> None:
    evicted = obj("Pod", "p", {}, status={"phase": "Failed", "reason": "Evicted", "message": "low on memory"})
    assert explained(evicted).sentence == "pod p failed: low on memory"
    gate = {"type": "Ready", "status": "False", "reason": "ReadinessGatesNotReady", "message": "gate lb is not True"}
    answer = explained(pod({"ready": True, "state": {"running": {}}}, conditions=[gate]), NODE)
    assert (answer.cause, "waits for its readiness gates: gate lb is not True" in answer.sentence) == ("gate", True)


def test_pods_that_are_fine_are_ready() -> None:
    ready = pod({"ready": True, "state": {"running": {}}}, **conditions(Ready=("True", "")))
    assert explained(ready, NODE).health is Health.READY
    assert explained(obj("Pod", "p", {}, status={"phase": "Succeeded"})).health is Health.READY


def test_a_rollout_whose_deadline_is_over_and_one_that_is_not_seen() -> None:
    over = [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]
    late = obj("Deployment", "d", {"replicas": 3}, status={"replicas": 3, "availableReplicas": 2, "conditions": over})
    answer = explained(late)
    assert (answer.health, answer.cause) == (Health.FAILED, "rollout")
    assert answer.sentence == "Deployment d has 2 of 3 replicas available, and its progress deadline is over"
    unseen = obj("Deployment", "d", {"replicas": 1}, status={"observedGeneration": 1})
    unseen["metadata"]["generation"] = 2
    assert explained(unseen).cause == "no-controller"
    fresh = obj("StatefulSet", "d", {"replicas": 1})
    fresh["metadata"] |= {"generation": 1, "creationTimestamp": NEW}
    assert explained(fresh).health is Health.PROGRESSING


def test_updates_of_stateful_and_daemon_sets() -> None:
    done = {"observedGeneration": 1, "replicas": 2, "readyReplicas": 2, "currentRevision": "a", "updateRevision": "b"}
    rolling = obj("StatefulSet", "s", {"replicas": 2}, status=done | {"updatedReplicas": 1})
    assert explained(rolling).sentence == "StatefulSet s has 1 of 2 pods updated"
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    parted = obj("StatefulSet", "s", {"replicas": 2, "updateStrategy": strategy}, status=done | {"updatedReplicas": 1})
    assert explained(parted).health is Health.READY
    by_hand = obj("StatefulSet", "s", {"replicas": 2, "updateStrategy": {"type": "OnDelete"}}, status=done)
    assert explained(by_hand).health is Health.READY
    counts = {"desiredNumberScheduled": 3, "currentNumberScheduled": 3, "numberReady": 3, "updatedNumberScheduled": 2}
    assert explained(obj("DaemonSet", "d", {}, status=counts)).health is Health.PROGRESSING
    assert explained(obj("DaemonSet", "d", {}, status=counts | {"updatedNumberScheduled": 3})).health is Health.READY


@pytest.mark.parametrize(
    ("status", "health", "says"),
    [
        (conditions(Ready=("True", "")), Health.READY, "is ready"),
        (conditions(Ready=("False", "no database")), Health.WAITING, "is not ready: no database"),
        (conditions(Ready=("Unknown", "asking")), Health.PROGRESSING, "is not ready: asking"),
        (conditions(Degraded=("True", "disk"), Ready=("True", "")), Health.FAILED, "is degraded: disk"),
        (conditions(Degraded=("False", ""), Available=("True", "")), Health.READY, "is available"),
        (conditions(Reconciling=("True", "step 2")), Health.PROGRESSING, "is reconciling: step 2"),
        (conditions(Hibernated=("True", "as asked"), Available=("False", "")), Health.READY, "hibernates: as asked"),
        (conditions(Hibernated=("True", "")), Health.READY, "hibernates"),
        (conditions(Hibernated=("True", ""), Stalled=("True", "held")), Health.FAILED, "is stalled: held"),
        (conditions(Hibernated=("False", ""), Ready=("False", "up")), Health.WAITING, "is not ready: up"),
        ({"phase": "Running"}, Health.READY, "is running"),
        ({"phase": "Hibernated", "readyReplicas": 0}, Health.READY, "is in the phase Hibernated"),
        (conditions(Healthy=("True", "")), Health.READY, "is healthy"),
        ({"state": "Failed"}, Health.FAILED, "is in the phase Failed"),
        ({"health": {"status": "Degraded"}}, Health.FAILED, "is in the phase Degraded"),
        ({"phase": "Deployed"}, Health.READY, "is deployed"),
        ({"phase": "Failed", "message": "no"}, Health.FAILED, "is in the phase Failed: no"),
        ({"phase": "Provisioning"}, Health.PROGRESSING, "is in the phase Provisioning"),
        ({"readyReplicas": 1}, Health.PROGRESSING, "has 1 of 3 replicas ready"),
        ({"readyReplicas": 3, "phase": "Ready"}, Health.READY, "is ready"),
    ],
)
def test_custom_resources_by_the_conventions(status: dict[str, Any], health: Health, says: str) -> None:
    thing = obj("Thing", "t", {"replicas": 3}, status=status) | {"apiVersion": "example.com/v1"}
    answer = explained(thing)
    assert (answer.health, answer.sentence) == (health, f"Thing t {says}")


def test_the_cause_of_a_custom_resource_is_what_decided() -> None:
    causes = {}
    for name, status in (("no", conditions(Ready=("False", ""))), ("asking", conditions(Ready=("Unknown", "")))):
        causes[name] = explained(obj("Thing", "t", {}, status=status) | {"apiVersion": "example.com/v1"}).cause
    assert causes == {"no": "condition", "asking": "custom"}


def test_a_refusal_in_the_events_of_a_custom_resource_is_its_cause() -> None:
    thing = obj("Thing", "t", {}, status={"phase": "Creating"}, namespace="n") | {"apiVersion": "example.com/v1"}
    about = {"kind": "Thing", "name": "t", "namespace": "n"}
    event = obj("Event", "e", namespace="n", involvedObject=about, type="Warning", reason="Failed", message=QUOTA)
    answer = Explainer(World([thing, event])).why(Ref("Thing", "t", "n", "example.com"))
    assert (answer.cause, answer.health) == ("quota", Health.WAITING)
    assert answer.sentence.startswith("Thing t waits: its ResourceQuota `q` would be exceeded: cpu=1 requested")


@pytest.mark.parametrize(
    ("spec", "status", "at_rest"),
    [
        ({}, conditions(Hibernated=("True", ""), Ready=("False", "")), True),
        ({}, conditions(Hibernated=("False", ""), Ready=("True", "")), False),
        ({"replicas": 3}, {"phase": "Hibernated", "readyReplicas": 0}, True),
        ({"replicas": 3}, {"phase": "Hibernating", "readyReplicas": 0}, False),
        ({"powerState": "Stopped"}, {"phase": "Stopped"} | conditions(Ready=("False", "off")), True),
        ({"running": False}, {"printableStatus": "Stopped"} | conditions(Ready=("False", "")), True),
        ({"runStrategy": "Halted"}, {"printableStatus": "Stopped"} | conditions(Ready=("False", "")), True),
        ({"runStrategy": "Halted"}, {"printableStatus": "Stopping"} | conditions(Ready=("False", "")), False),
        ({"powerState": "Running"}, {"phase": "Stopped"} | conditions(Ready=("False", "off")), False),
        ({"running": True}, {"printableStatus": "Stopped"} | conditions(Ready=("False", "")), False),
        ({"powerState": "Stopped"}, {"phase": "Stopped"} | conditions(Failed=("True", "disk")), False),
    ],
)
def test_what_its_user_wants_to_rest_is_ready(spec: dict[str, Any], status: dict[str, Any], at_rest: bool) -> None:
    thing = obj("Thing", "t", spec, status=status) | {"apiVersion": "example.com/v1"}
    answer = explained(thing)
    assert answer.at_rest is at_rest
    assert not at_rest or answer.health is Health.READY


def test_what_is_stopped_or_scaled_to_zero_rests() -> None:
    machine = obj(
        "Thing", "t", {"powerState": "Stopped"}, status={"phase": "Stopped"} | conditions(Ready=("False", ""))
    )
    assert explained(machine | {"apiVersion": "x.io/v1"}).sentence == "Thing t is stopped, as its spec asks"
    for kind in ("Deployment", "StatefulSet"):
        none = explained(obj(kind, "a", {"replicas": 0}, status={"replicas": 0}))
        assert (none.health, none.at_rest, none.sentence) == (Health.READY, True, f"{kind} a is scaled to zero")
        some = explained(obj(kind, "a", {"replicas": 1}, status=dict.fromkeys(REPLICAS, 1)))
        assert (some.health, some.at_rest) == (Health.READY, False)


REPLICAS = ("replicas", "readyReplicas", "availableReplicas", "updatedReplicas")
QUOTA = "exceeded quota: q, requested: cpu=1, used: cpu=3, limited: cpu=3"


@pytest.mark.limit(20)  # minutes, where the time grows with the square of the length
@pytest.mark.parametrize("text", ["x" * 500_000, "x max limit to " * 40_000, "a: Forbidden: " * 40_000])
def test_long_messages_do_not_take_long(text: str) -> None:
    assert refusal(text, "n", World([])) is None
    many = [{"type": f"T{number}", "status": "False", "message": text} for number in range(40)]
    thing = obj("Thing", "t", {}, status={"conditions": [*many, *conditions(Ready=("False", text))["conditions"]]})
    assert explained(thing | {"apiVersion": "x.io/v1"}).health is Health.WAITING


def test_a_refusal_is_seen_beside_a_long_message() -> None:
    states = conditions(Ready=("False", "x" * 60_000), Synced=("False", QUOTA), Odd=("False", "x" * 60_000))
    assert explained(obj("Thing", "t", {}, status=states) | {"apiVersion": "x.io/v1"}).cause == "quota"


def test_of_a_message_the_beginning_is_looked_at() -> None:
    assert refusal("x" * 4_000 + QUOTA, "n", World([])) is not None
    assert refusal("x" * 4_096 + QUOTA, "n", World([])) is None


def test_a_claim_may_ask_for_no_class_or_for_the_default() -> None:
    def pending(spec: dict[str, Any], *classes: dict[str, Any], created: str = OLD, **options: Any) -> Any:
        claim = obj("PersistentVolumeClaim", "c", spec, status={"phase": "Pending"})
        claim["metadata"]["creationTimestamp"] = created
        return explained(claim, *classes, **options)

    plain, default = (obj("StorageClass", name, namespace="", provisioner="p") for name in ("plain", "std"))
    default["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
    static = pending({"storageClassName": ""}, default)
    assert (static.health, static.cause) == (Health.WAITING, "no-volume")
    assert static.sentence == "claim c asks for a volume without a storage class, and no volume fits"
    without = pending({}, plain)
    assert (without.cause, "there is no default" in without.sentence) == ("no-storage-class", True)
    late, soon = pending({}, plain, default), pending({}, plain, default, created=NEW)
    assert (late.health, soon.health) == (Health.WAITING, Health.PROGRESSING)
    assert "was not given the default (std) yet" in late.sentence
    unread = pending({}, listed=())
    assert unread.sentence == "claim c names no storage class, and no volume fits"


def test_claims_volumes_and_the_parts_of_the_api() -> None:
    spec = {"storageClassName": "slow"}
    slow = obj("StorageClass", "slow", namespace="", provisioner="kubernetes.io/no-provisioner")
    assert explained(obj("PersistentVolumeClaim", "c", spec, status={"phase": "Pending"}), slow).cause == "no-volume"
    first = slow | {"volumeBindingMode": "WaitForFirstConsumer"}
    waits = explained(obj("PersistentVolumeClaim", "c", spec, status={"phase": "Pending"}), first)
    assert (waits.health, waits.cause) == (Health.PROGRESSING, "")
    lost = explained(obj("PersistentVolumeClaim", "c", {"volumeName": "v"}, status={"phase": "Lost"}))
    assert (lost.health, lost.cause) == (Health.FAILED, "missing-volume")
    names = conditions(NamesAccepted=("False", "taken by another"))
    definition = explained(obj("CustomResourceDefinition", "d", {}, namespace="", status=names))
    assert (definition.health, definition.cause) == (Health.FAILED, "definition")
    api = obj("APIService", "v1.x", {"service": {"name": "s", "namespace": "n"}}, namespace="")
    api |= {"apiVersion": "apiregistration.k8s.io/v1", "status": conditions(Available=("False", "no endpoints"))}
    assert explained(api).sentence == "APIService v1.x waits: its Service `s` does not exist"


def test_a_namespace_waits_for_an_api_that_does_not_answer() -> None:
    gone = conditions(NamespaceDeletionDiscoveryFailure=("True", "metrics.k8s.io/v1beta1: stale"))
    old = obj("Namespace", "old", {}, namespace="", status={"phase": "Terminating", **gone})
    api = obj("APIService", "v1beta1.metrics.k8s.io", {}, namespace="")
    api |= {"apiVersion": "apiregistration.k8s.io/v1", "status": conditions(Available=("False", "no answer"))}
    answer = explained(old, api)
    assert [step.ref.kind for step in answer.chain] == ["Namespace", "APIService"]


def test_a_deletion_is_given_time_and_foreground_children_are_followed() -> None:
    thing = obj("ConfigMap", "c")
    thing["metadata"] |= {"deletionTimestamp": NEW, "finalizers": ["x.io/a"]}
    assert explained(thing).health is Health.PROGRESSING
    thing["metadata"] |= {"deletionTimestamp": OLD, "finalizers": ["foregroundDeletion"]}
    child = obj("Secret", "child")
    child["metadata"] |= {"ownerReferences": [{"uid": "subject"}], "deletionTimestamp": OLD, "finalizers": ["x.io/b"]}
    answer = explained(thing, child)
    assert ([step.ref.name for step in answer.chain], answer.cause) == (["c", "child"], "finalizer")


def test_a_schedule_that_the_controller_cannot_read() -> None:
    event = obj("Event", "e", type="Warning", reason="UnknownTimeZone", message="invalid timeZone: Mars/Base")
    event["involvedObject"] = {"kind": "CronJob", "namespace": "default", "name": "nightly", "uid": "subject"}
    answer = explained(obj("CronJob", "nightly", {"schedule": "@daily"}), event)
    assert (answer.health, answer.cause) == (Health.FAILED, "schedule")
    assert answer.sentence == "CronJob nightly waits: its schedule is not valid: invalid timeZone: Mars/Base"
    event["involvedObject"]["uid"] = "another of that name"
    assert explained(obj("CronJob", "nightly", {"schedule": "@daily"}), event).health is Health.READY


@pytest.mark.parametrize(
    "group", ["autoscaling.k8s.io", "snapshot.storage.k8s.io", "cluster.x-k8s.io", "apps.example.com"]
)
def test_groups_that_only_look_like_those_of_kubernetes(group: str) -> None:
    thing = obj("Thing", "t", {}, status=conditions(Ready=("False", "not yet"))) | {"apiVersion": f"{group}/v1"}
    assert explained(thing).sentence == "Thing t is not ready: not yet"
    lease = obj("Lease", "l", {}, status=conditions(Ready=("False", "no condition of ours")))
    assert explained(lease).health is Health.READY


def test_texts() -> None:
    assert printable("a\tb\x00\u202e\ud800") == "a\tb\\x00\\u202e\\ud800"
    assert (shorten("x" * 300)[-1], len(shorten("x" * 300))) == ("…", 240)
    assert (listed([]), listed("a"), listed("abc"), listed("abcd")) == ("", "a", "a, b and c", "a, b, c and 1 more")
