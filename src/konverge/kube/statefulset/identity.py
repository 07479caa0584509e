"""The identity of a StatefulSet's pod: ordinal, name, labels, host name, claims; and how it is built from a template.

Upstream: pkg/controller/statefulset/stateful_set_utils.go.
"""

from __future__ import annotations

import re

from konverge.kube import pods as podlib
from konverge.kube.revisions import POD_LABEL
from konverge.objects.codec import from_dict, to_dict
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.core_v1 import (
    PersistentVolumeClaim,
    PersistentVolumeClaimVolumeSource,
    Pod,
    PodTemplateSpec,
    Volume,
)

POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"

_NAME = re.compile(r"(.*)-([0-9]+)", re.DOTALL)
_MAX_INT32 = 2**31 - 1


def parent_and_ordinal(name: str) -> tuple[str, int]:
    """Upstream: getParentNameAndOrdinal.

    >>> parent_and_ordinal("web-12"), parent_and_ordinal("web")
    (('web', 12), ('', -1))
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return "", -1
    number = match[2].lstrip("0") or "0"
    return match[1], int(number) if len(number) <= 10 and int(number) <= _MAX_INT32 else -1


def ordinal_of(pod: Pod) -> int:
    return parent_and_ordinal(pod.metadata.name)[1]


def is_member(statefulset: StatefulSet, pod: Pod) -> bool:
    return parent_and_ordinal(pod.metadata.name)[0] == statefulset.metadata.name


def start_of(statefulset: StatefulSet) -> int:
    return (statefulset.spec.ordinals.start or 0) if statefulset.spec.ordinals else 0


def ordinals_of(statefulset: StatefulSet) -> range:
    """The ordinals that the set should have. Upstream: podInOrdinalRange."""
    start = start_of(statefulset)
    return range(start, start + podlib.replicas_of(statefulset))


def claim_name(template: PersistentVolumeClaim, statefulset: StatefulSet, ordinal: int) -> str:
    return f"{template.metadata.name}-{statefulset.metadata.name}-{ordinal}"


def claims_for(statefulset: StatefulSet, ordinal: int) -> list[PersistentVolumeClaim]:
    """The claims of one ordinal as they are created; the selector's labels are added to the templates' own."""
    claims = []
    for template in statefulset.spec.volume_claim_templates:
        claim = from_dict(PersistentVolumeClaim, {**to_dict(template), "status": {}})
        claim.metadata.name = claim_name(template, statefulset, ordinal)
        claim.metadata.namespace = statefulset.metadata.namespace
        claim.metadata.labels = {**claim.metadata.labels, **statefulset.spec.selector.match_labels}
        claims.append(claim)
    return claims


def volumes_for(statefulset: StatefulSet, pod: Pod) -> list[Volume]:
    """The pod's volumes with those of the claim templates, which win over volumes of the same name."""
    ordinal = ordinal_of(pod)
    claimed = [
        Volume(
            name=template.metadata.name,
            persistent_volume_claim=PersistentVolumeClaimVolumeSource(
                claim_name=claim_name(template, statefulset, ordinal)
            ),
        )
        for template in statefulset.spec.volume_claim_templates
    ]
    names = {volume.name for volume in claimed}
    return [*claimed, *(volume for volume in pod.spec.volumes if volume.name not in names)]


# upstream: storageMatches
def storage_matches(statefulset: StatefulSet, pod: Pod) -> bool:
    held = {volume.name: volume.persistent_volume_claim for volume in pod.spec.volumes}
    for template in statefulset.spec.volume_claim_templates:
        source = held.get(template.metadata.name)
        if source is None or source.claim_name != claim_name(template, statefulset, ordinal_of(pod)):
            return False
    return True


def identity_labels(pod: Pod) -> dict[str, str]:
    return {POD_NAME: pod.metadata.name, POD_INDEX: str(ordinal_of(pod))}


def pod_for(statefulset: StatefulSet, template: PodTemplateSpec, revision: str, ordinal: int) -> Pod:
    """The pod of an ordinal, from the template of a revision. Upstream: newVersionedStatefulSetPod."""
    pod = podlib.from_template(statefulset, template, name=f"{statefulset.metadata.name}-{ordinal}")
    pod.metadata.labels = {**pod.metadata.labels, **identity_labels(pod), POD_LABEL: revision}
    pod.spec.hostname = pod.metadata.name
    pod.spec.subdomain = statefulset.spec.service_name
    pod.spec.volumes = volumes_for(statefulset, pod)
    return pod
