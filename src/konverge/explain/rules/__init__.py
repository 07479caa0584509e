"""The rules that judge an object: one module per sort of kind. `judge` picks the rule. Pure."""

from __future__ import annotations

from collections.abc import Callable

from konverge.explain.links import is_custom
from konverge.explain.model import Health, Ref, Verdict
from konverge.explain.reading import Obj, text
from konverge.explain.rules import parts, workloads
from konverge.explain.rules.custom import judge_custom
from konverge.explain.rules.deletion import judge_deletion
from konverge.explain.rules.pods import judge_pod
from konverge.explain.sentences import say
from konverge.explain.world import World

_RULES: dict[tuple[str, str], Callable[[Ref, Obj, World], Verdict]] = {
    ("", "Pod"): judge_pod,
    ("", "PersistentVolumeClaim"): parts.judge_claim,
    ("", "PersistentVolume"): parts.judge_volume,
    ("", "Service"): parts.judge_service,
    ("", "Node"): parts.judge_node,
    ("", "Namespace"): parts.judge_namespace,
    ("", "ResourceQuota"): parts.judge_quota,
    ("", "ReplicationController"): workloads.judge_replica_set,
    ("apps", "Deployment"): workloads.judge_deployment,
    ("apps", "ReplicaSet"): workloads.judge_replica_set,
    ("apps", "StatefulSet"): workloads.judge_stateful_set,
    ("apps", "DaemonSet"): workloads.judge_daemon_set,
    ("batch", "Job"): workloads.judge_job,
    ("batch", "CronJob"): workloads.judge_cron_job,
    ("autoscaling", "HorizontalPodAutoscaler"): workloads.judge_autoscaler,
    ("policy", "PodDisruptionBudget"): parts.judge_budget,
    ("networking.k8s.io", "Ingress"): parts.judge_ingress,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): parts.judge_definition,
    ("apiregistration.k8s.io", "APIService"): parts.judge_api_service,
}


def judge(ref: Ref, world: World) -> Verdict:
    """How an object is, and what it may be waiting for."""
    obj = world.get(ref)
    if obj is None:
        if world.is_missing(ref):
            return Verdict(Health.FAILED, say("does not exist"), cause=f"missing-{ref.noun.lower().replace(' ', '-')}")
        return Verdict(Health.UNKNOWN, say("could not be read"))
    if text(obj, "metadata", "deletionTimestamp") and ref.kind != "Namespace":
        return judge_deletion(ref, obj, world)
    rule = _RULES.get((ref.group, ref.kind)) or (judge_custom if is_custom(ref.group) else parts.judge_plain)
    return rule(ref, obj, world)
