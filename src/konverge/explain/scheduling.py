"""Why a pod finds no node, from the scheduler's message. Pure. Upstream: FitError.Error (pkg/scheduler/framework)."""

from __future__ import annotations

import re

from konverge.explain.texts import shorten

_HEAD = re.compile(r"0/(\d+) nodes are available: (.*)", re.S)
_COUNTED = re.compile(r"(\d+) (.+)", re.S)
_TEXTS = (
    (re.compile(r"Insufficient (\S+)"), "not enough {0}"),
    (re.compile(r"Too many pods"), "no room for another pod"),
    (re.compile(r"node\(s\) had untolerated taint (\{.*\})"), "the taint {0}, which it does not tolerate"),
    (re.compile(r"node\(s\) had untolerated taint\(s\)"), "a taint that it does not tolerate"),
    (
        re.compile(r"node\(s\) had taint (\{.*\}), that the pod didn't tolerate"),
        "the taint {0}, which it does not tolerate",
    ),
    (re.compile(r"node\(s\) were unschedulable"), "been cordoned"),
    (re.compile(r"node\(s\) didn't match Pod's node affinity/selector"), "labels other than it asks for"),
    (re.compile(r"node\(s\) didn't match pod affinity rules"), "no pod beside which it must run"),
    (re.compile(r"node\(s\) didn't match pod anti-affinity rules"), "a pod beside which it must not run"),
    (re.compile(r"node\(s\) didn't match pod topology spread constraints.*"), "more such pods than its spread allows"),
    (re.compile(r"node\(s\) didn't have free ports.*"), "its port in use"),
    (
        re.compile(r"node\(s\) (?:had volume node affinity conflict|didn't match PersistentVolume's node affinity)"),
        "no access to its volume",
    ),
    (re.compile(r"node\(s\) exceed max volume count"), "no room for another volume"),
)
CLAIMS = re.compile(
    r"(?i)unbound immediate persistentvolumeclaims|persistentvolumeclaim \"|storageclass.* not found"
    r"|did not find available persistent volumes"
)
"""The scheduler's ways of saying that the reason is a claim."""


def condense(message: str) -> str:
    """What follows the name of the pod.

    >>> condense("0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable. preemption: 0/3 nodes …")
    'fits on none of 3 nodes: 1 has not enough cpu, 2 have been cordoned'
    """
    if "no nodes available" in message or message.startswith("0/0 nodes"):
        return "finds no node: the cluster has none"
    head = _HEAD.match(message)
    if head is None:
        return f"cannot be scheduled: {shorten(message)}"
    reasons = head[2].partition(". preemption:")[0].partition(". no new claims")[0].rstrip(". ")
    parts = [_reason(part) for part in _split(reasons)]
    total = int(head[1])
    return (
        f"fits on none of {total} nodes: {', '.join(parts)}"
        if total != 1
        else f"does not fit on the only node: {', '.join(parts)}"
    )


def _split(reasons: str) -> list[str]:
    """The reasons are separated by commas, which taints may have as well."""
    return re.split(r", (?=\d+ )", reasons)


def _reason(part: str) -> str:
    counted = _COUNTED.fullmatch(part.strip())
    if counted is None:
        return shorten(part)
    for pattern, text in _TEXTS:
        match = pattern.fullmatch(counted[2])
        if match is not None:
            return f"{counted[1]} {'has' if counted[1] == '1' else 'have'} {text.format(*match.groups())}"
    return shorten(part)


def cause_of(message: str) -> str:
    """The sort of the cause."""
    for sign, cause in _CAUSES:
        if sign in message:
            return cause
    return "unschedulable"


_CAUSES = (
    ("no nodes available", "no-nodes"),
    ("0/0 nodes", "no-nodes"),
    ("Insufficient ", "no-room"),
    ("Too many pods", "no-room"),
    ("untolerated taint", "taint"),
    ("affinity", "affinity"),
    ("spread constraints", "affinity"),
    ("were unschedulable", "cordoned"),
)
