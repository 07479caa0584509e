"""Defaults of pods and pod templates.

    default_pod_template(template)   # Deployment, Job, ReplicationController, …: what every template gets
    default_pod(pod)                 # a Pod: more than a template gets

Every template in the API goes through the same table; a Pod gets some more, because a default that is added to
templates would make every stored workload look changed.

Upstream: pkg/apis/core/v1/defaults.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from konverge.apiserver.kinds.rules.defaults import each, fill, fill_numbers, fill_unset, section_of
from konverge.apiserver.kinds.rules.quantities import MILLI, amount, rounded_to_milli
from konverge.objects.text_cache import remembered

_NAME = re.compile(
    r"(?P<name>(?:(?:localhost|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+(?::[0-9]+)?|[A-Za-z0-9-]+:[0-9]+"
    r"|\[[0-9a-fA-F:]+\](?::[0-9]+)?)/)?"
    r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*)*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?(?P<digest>@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?"
)
_LONGEST_NAME = 255


@remembered(1024)
def default_pull_policy(image: str) -> str:  # upstream: SetDefaults_Container
    """Always for `:latest` and for no tag at all; a reference that is no reference counts as tagged."""
    match = _NAME.fullmatch(image)
    if match is None or len(match["name"]) > _LONGEST_NAME:
        return "IfNotPresent"
    return "Always" if match["tag"] == "latest" or not (match["tag"] or match["digest"]) else "IfNotPresent"


Obj = dict[str, Any]

_SPEC = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": dict,
    "schedulerName": "default-scheduler",
}
_CONTAINER = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_HTTP = {"path": "/", "scheme": "HTTP"}
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def default_resource_list(resources: Obj | None) -> None:  # upstream: SetDefaults_ResourceList
    """Amounts finer than a thousandth are rounded up to one."""
    if not resources:
        return
    for name, value in resources.items():
        if amount(value) % MILLI:
            resources[name] = rounded_to_milli(value)


def default_resources(resources: Obj) -> None:
    default_resource_list(resources.get("limits"))
    default_resource_list(resources.get("requests"))


def default_claim_spec(spec: Obj) -> None:  # upstream: SetDefaults_PersistentVolumeClaimSpec
    """A PersistentVolumeClaimSpec, in a claim or in a template of one."""
    fill_unset(spec, {"volumeMode": "Filesystem"})
    default_resources(section_of(spec, "resources"))


def _default_items(source: Obj) -> None:  # upstream: SetDefaults_ObjectFieldSelector
    for item in each(source, "items"):
        if item.get("fieldRef") is not None:
            fill(item["fieldRef"], {"apiVersion": "v1"})


def _default_downward(source: Obj) -> None:  # upstream: SetDefaults_DownwardAPIVolumeSource
    fill(source, {"defaultMode": 0o644})
    _default_items(source)


# upstream: SetDefaults_ProjectedVolumeSource, SetDefaults_ServiceAccountTokenProjection
def _default_projected(source: Obj) -> None:
    fill(source, {"defaultMode": 0o644})
    for projection in each(source, "sources"):
        if projection.get("downwardAPI") is not None:
            _default_items(projection["downwardAPI"])
        if projection.get("serviceAccountToken") is not None:
            fill_unset(projection["serviceAccountToken"], {"expirationSeconds": 3600})


def _default_ephemeral(source: Obj) -> None:  # upstream: SetDefaults_PersistentVolumeClaimSpec
    template = source.get("volumeClaimTemplate")
    if template is not None:
        section_of(template, "metadata")
        default_claim_spec(section_of(template, "spec"))


def _default_image(source: Obj) -> None:  # upstream: SetDefaults_Volume
    fill(source, {"pullPolicy": default_pull_policy(source.get("reference") or "")})


def _filling(values: Obj) -> Callable[[Obj], None]:
    return lambda source: fill(source, values)


def _filling_pointers(values: Obj) -> Callable[[Obj], None]:
    """An empty text is a value."""
    return lambda source: fill_unset(source, values)


# upstream: SetDefaults_HostPathVolumeSource, SetDefaults_SecretVolumeSource and others; the rest by +default tags
VOLUME_SOURCES: dict[str, Callable[[Obj], None]] = {
    "hostPath": _filling_pointers({"type": ""}),
    "secret": _filling({"defaultMode": 0o644}),
    "configMap": _filling({"defaultMode": 0o644}),
    "iscsi": _filling({"iscsiInterface": "default"}),
    "rbd": _filling({"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"}),
    "downwardAPI": _default_downward,
    "azureDisk": _filling_pointers({"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"}),
    "projected": _default_projected,
    "scaleIO": _filling({"storageMode": "ThinProvisioned", "fsType": "xfs"}),
    "ephemeral": _default_ephemeral,
    "image": _default_image,
}
"""Defaults by kind of volume; a PersistentVolume uses those of the sources that it can have."""


def _default_volume(volume: Obj) -> None:  # upstream: SetDefaults_Volume
    present = False
    for name, source in list(volume.items()):
        if name == "name" or source is None:
            continue
        present = True
        if name in VOLUME_SOURCES:
            VOLUME_SOURCES[name](source)
    if not present:
        volume["emptyDir"] = {}


def _default_probe(probe: Obj) -> None:  # upstream: SetDefaults_Probe
    fill_numbers(probe, _PROBE)
    _default_handler(probe)


def _default_handler(handler: Obj | None) -> None:  # upstream: SetDefaults_HTTPGetAction
    if handler is None:
        return
    if handler.get("httpGet") is not None:
        fill(handler["httpGet"], _HTTP)
    if handler.get("grpc") is not None and handler["grpc"].get("service") is None:
        handler["grpc"]["service"] = ""


def _default_env(entry: Obj) -> None:  # upstream: SetDefaults_ObjectFieldSelector
    source = entry.get("valueFrom")
    if source is None:
        return
    if source.get("fieldRef") is not None:
        fill(source["fieldRef"], {"apiVersion": "v1"})
    if source.get("fileKeyRef") is not None and source["fileKeyRef"].get("optional") is None:
        source["fileKeyRef"]["optional"] = False


def _default_container(container: Obj) -> None:  # upstream: SetDefaults_Container
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = default_pull_policy(container.get("image") or "")
    fill(container, _CONTAINER)
    for port in each(container, "ports"):
        if not port.get("protocol"):
            port["protocol"] = "TCP"
    for entry in each(container, "env"):
        _default_env(entry)
    default_resources(section_of(container, "resources"))
    for name in _PROBES:
        if container.get(name) is not None:
            _default_probe(container[name])
    lifecycle = container.get("lifecycle")
    if lifecycle is not None:
        _default_handler(lifecycle.get("postStart"))
        _default_handler(lifecycle.get("preStop"))


def default_pod_spec(spec: Obj) -> None:  # upstream: SetDefaults_PodSpec
    """What the spec of every pod and every template gets."""
    drop_gated(spec)
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    fill(spec, _SPEC)
    for volume in each(spec, "volumes"):
        _default_volume(volume)
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for container in each(spec, kind):
            _default_container(container)
    default_resource_list(spec.get("overhead"))
    if spec.get("resources") is not None:
        default_resources(spec["resources"])


def default_pod_template(template: Obj) -> None:
    """A PodTemplateSpec."""
    section_of(template, "metadata")
    default_pod_spec(section_of(template, "spec"))


def default_pod(pod: Obj) -> None:  # upstream: SetDefaults_Pod
    """A Pod."""
    spec = section_of(pod, "spec")
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        spec["terminationGracePeriodSeconds"] = 1
    for kind in ("containers", "initContainers"):
        for container in each(spec, kind):
            _requests_from_limits(container.get("resources"))
            if spec.get("hostNetwork"):
                _host_ports(container)
    fill_unset(spec, {"enableServiceLinks": True})
    default_pod_spec(spec)
    _default_addresses(section_of(pod, "status"))


def _requests_from_limits(resources: Obj | None) -> None:  # upstream: SetDefaults_Pod
    if resources and resources.get("limits"):
        resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}


def _host_ports(container: Obj) -> None:  # upstream: defaultHostNetworkPorts
    for port in each(container, "ports"):
        if not port.get("hostPort") and port.get("containerPort"):
            port["hostPort"] = port["containerPort"]


def _default_addresses(status: Obj) -> None:  # upstream: SetDefaults_PodStatus
    """podIP and podIPs say the same; podIP wins where they differ."""
    first, listed = status.get("podIP"), status.get("podIPs")
    if first and (not listed or listed[0].get("ip") != first):
        status["podIPs"] = [{"ip": first}]
    elif listed and not first:
        status["podIP"] = listed[0].get("ip", "")


_OF_FILES = ("secret", "configMap", "downwardAPI", "projected")


def drop_gated(spec: Obj) -> None:  # upstream: DropDisabledTemplateFields (pkg/api/pod)
    """Remove what belongs to alpha features, from the spec of a pod or template."""
    spec.pop("schedulingGroup", None)
    spec.pop("evictionResponders", None)
    for volume in each(spec, "volumes"):
        _drop_from_volume(volume)
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for container in each(spec, kind):
            _drop_from_container(container)


def _drop_from_volume(volume: Obj) -> None:  # upstream: dropDisabledFields (pkg/api/pod)
    if volume.get("emptyDir"):
        volume["emptyDir"].pop("mode", None)
    for name in _OF_FILES:
        if volume.get(name):
            _drop_owners(volume[name])


def _drop_owners(source: Obj) -> None:  # upstream: dropDisabledAtomicWriteVolumeUserFields
    """Who owns the files of a volume."""
    source.pop("defaultUser", None)
    source.pop("user", None)
    for item in each(source, "items"):
        item.pop("user", None)
    for projection in each(source, "sources"):
        for inner in projection.values():
            if inner:
                _drop_owners(inner)


def _drop_from_container(container: Obj) -> None:  # upstream: dropContainerStopSignals
    for mount in each(container, "volumeMounts"):
        mount.pop("bindMountOptions", None)
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(name):
            _drop_from_handler(container[name])
    lifecycle = container.get("lifecycle")
    if not lifecycle:
        return
    for hook in lifecycle.values():
        if isinstance(hook, dict):
            _drop_from_handler(hook)
    if lifecycle.pop("stopSignal", None) and not lifecycle:
        del container["lifecycle"]


def _drop_from_handler(handler: Obj) -> None:  # upstream: dropHTTPProbeProtocol, dropDisabledGRPCContainerProbeTLS
    if handler.get("httpGet"):
        handler["httpGet"].pop("protocol", None)
    if handler.get("grpc"):
        handler["grpc"].pop("mode", None)
