"""The spec of a pod.

    check_pod_spec(spec, path, report, metadata, is_pod=True)

A template's spec is the same with a little more patience: see `is_pod`.

Upstream: pkg/apis/core/validation.
"""

from __future__ import annotations

from typing import Any

from konverge.apiserver.go.structs import internal
from konverge.apiserver.kinds.core.pod.containers import ephemeral_containers, init_containers, regular_containers
from konverge.apiserver.kinds.core.pod.operating_systems import host_process, operating_system
from konverge.apiserver.kinds.core.pod.resources import overhead, pod_resources
from konverge.apiserver.kinds.core.pod.scheduling import AFFINITY, TOLERATIONS, topology_spread
from konverge.apiserver.kinds.core.pod.scope import containers_of, pod_scope
from konverge.apiserver.kinds.core.pod.security_context import POD_CONTEXT
from konverge.apiserver.kinds.core.volume.sources import volumes
from konverge.apiserver.kinds.framework.declare import (
    Report,
    distinct,
    field,
    given,
    items,
    one_of_required,
    present,
    required,
    struct,
    text,
)
from konverge.apiserver.kinds.rules.names import (
    dns_label,
    dns_subdomain,
    dns_subdomain_underscore,
    labels,
    qualified_name,
)
from konverge.apiserver.kinds.rules.network import ip_legacy
from konverge.apiserver.kinds.rules.numbers import MAX_INT32, within


def _resource_claims(value: Any, path: str, report: Report) -> bool:  # upstream: validatePodResourceClaims
    if "kubernetes.io/config.mirror" in report.scope.annotations:
        return report.forbidden("", "static pods do not support resource claims")
    return items(struct(field("name", required, distinct, dns_label), _claim_source))(value, path, report)


def _claim_source(value: Any, path: str, report: Report) -> bool:  # upstream: validatePodResourceClaim
    claim, template = value.get("resourceClaimName"), value.get("resourceClaimTemplateName")
    shown = internal("core.PodResourceClaim", value)
    if claim is not None and template is not None:
        detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        report.invalid(path, shown, detail)
    if claim is None and template is None:
        detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        report.invalid(path, shown, detail)
    if claim is not None:
        dns_subdomain(claim, f"{path}.resourceClaimName", report)
    return template is None or dns_subdomain(template, f"{path}.resourceClaimTemplateName", report)


def _host_network_ports(spec: Any, path: str, report: Report) -> bool:  # upstream: validatePodHostNetworkDeps
    if not spec.get("hostNetwork"):
        return True
    for index, container in enumerate(spec.get("containers") or ()):
        for at, port in enumerate(container.get("ports") or ()):
            outside = port.get("hostPort") or 0
            if (report.scope.is_pod or outside) and outside != (port.get("containerPort") or 0):
                detail = "must match `containerPort` when `hostNetwork` is true"
                report.invalid(f"{path}.containers[{index}].ports[{at}].hostPort", outside, detail)
    return True


def _shared_processes(spec: Any, path: str, report: Report) -> bool:  # upstream: validateShareProcessNamespace
    clash = spec.get("shareProcessNamespace") and spec.get("hostPID")
    detail = "ShareProcessNamespace and HostPID cannot both be enabled"
    return not clash or report.invalid(f"{path}.shareProcessNamespace", True, detail)


def _dns_config(spec: Any, path: str, report: Report) -> bool:  # upstream: validatePodDNSConfig
    config, place = spec.get("dnsConfig"), f"{path}.dnsConfig"
    if spec.get("dnsPolicy") == "None":
        if config is None:
            return report.required(place, "must provide `dnsConfig` when `dnsPolicy` is None")
        if not config.get("nameservers"):
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return report.required(f"{place}.nameservers", detail)
    return config is None or _DNS(config, place, report)


def _few_nameservers(value: Any, path: str, report: Report) -> bool:  # upstream: validatePodDNSConfig
    if len(value) > 3:
        report.invalid(path, value, "must not have more than 3 nameservers")
    return items(ip_legacy)(value, path, report)


def _searches(value: Any, path: str, report: Report) -> bool:  # upstream: validatePodDNSConfig
    if len(value) > 32:
        report.invalid(path, value, "must not have more than 32 search paths")
    if len(" ".join(value)) > 2048:
        detail = "must not have more than 2048 characters (including spaces) in the search list"
        report.invalid(path, value, detail)
    for index, search in enumerate(value):
        if search != ".":
            dns_subdomain_underscore(search.removesuffix("."), f"{path}[{index}]", report)
    return True


def _dns_option(value: Any, path: str, report: Report) -> bool:  # upstream: validatePodDNSConfig
    return bool(value.get("name")) or report.required(path, "must not be empty")


_DNS = struct(
    field("nameservers", _few_nameservers),
    field("searches", _searches),
    field("options", items(_dns_option)),
)


def _scheduling_gate(value: Any, path: str, report: Report) -> bool:  # upstream: validateSchedulingGates
    name = value.get("name") or ""
    qualified_name(name, path, report)
    return distinct(name, path, report)


def _host_users(spec: Any, path: str, report: Report) -> bool:  # upstream: validateHostUsers
    if spec.get("hostUsers") is not False:
        return True
    for name, shown in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
        if spec.get(name):
            report.forbidden(f"{path}.{shown}", "when `hostUsers` is false")
    for container, place in containers_of(spec, path):
        if container.get("volumeDevices"):
            report.forbidden(f"{place}.volumeDevices", "when `hostUsers` is false")
    return True


def _hostname_override(spec: Any, path: str, report: Report) -> bool:  # upstream: validatePodHostName
    name, place = spec.get("hostnameOverride"), f"{path}.hostnameOverride"
    if name is None:
        return True
    if spec.get("setHostnameAsFQDN"):
        report.forbidden(place, "may not be specified when setHostnameAsFQDN is true")
    if spec.get("hostNetwork"):
        report.forbidden(place, "may not be specified when hostNetwork is true")
    if len(name.encode()) > 64:
        report.too_long(place, 64)
    return dns_subdomain(name, place, report)


def _files_of_env(spec: Any, path: str, report: Report) -> bool:  # upstream: validateFileKeyRefVolumes
    sources = {volume.get("name"): volume for volume in spec.get("volumes") or ()}
    for container, place in containers_of(spec, path):
        for index, entry in enumerate(container.get("env") or ()):
            reference = (entry.get("valueFrom") or {}).get("fileKeyRef")
            if reference is None:
                continue
            name, at = reference.get("volumeName") or "", f"{place}.env[{index}].valueFrom.fileKeyRef.volumeName"
            if name not in sources:
                report.not_found(at, name)
            elif sources[name].get("emptyDir") is None:
                report.invalid(at, name, "referenced volume must be of type emptyDir")
    return True


_SPEC = struct(  # upstream: ValidatePodSpec
    field("terminationGracePeriodSeconds", present),
    field("volumes", volumes),
    field("resourceClaims", _resource_claims),
    field("containers", required, regular_containers),
    field("initContainers", init_containers),
    field("ephemeralContainers", ephemeral_containers),
    pod_resources,
    _host_network_ports,
    field("restartPolicy", one_of_required("Always", "OnFailure", "Never")),
    field("dnsPolicy", one_of_required("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")),
    field("nodeSelector", labels),
    field("securityContext", POD_CONTEXT),
    _shared_processes,
    field("affinity", AFFINITY),
    _dns_config,
    field("readinessGates", items(struct(text("conditionType", qualified_name)))),  # upstream: validateReadinessGates
    field("schedulingGates", items(_scheduling_gate)),
    field("topologySpreadConstraints", topology_spread),
    host_process,
    _host_users,
    _hostname_override,
    field("serviceAccountName", dns_subdomain),
    field("nodeName", dns_subdomain),
    field("activeDeadlineSeconds", within(1, MAX_INT32)),
    field("hostname", dns_label),
    field("subdomain", dns_label),
    field("tolerations", TOLERATIONS),
    # upstream: ValidateHostAliases
    field("hostAliases", items(struct(text("ip", ip_legacy), field("hostnames", items(dns_subdomain))))),
    field("priorityClassName", dns_subdomain),
    given("runtimeClassName", dns_subdomain),
    given("preemptionPolicy", one_of_required("PreemptLowerPriority", "Never")),
    field("overhead", overhead),
    operating_system,
    _files_of_env,
)


# upstream: ValidatePodSpec
def check_pod_spec(
    spec: dict[str, Any], path: str, report: Report, metadata: dict[str, Any], *, is_pod: bool = False
) -> bool:
    """All rules of a pod's spec; the scope of the report is the pod's while they run."""
    around, report.scope = report.scope, pod_scope(spec, metadata, is_pod=is_pod)
    _SPEC(spec, path, report)
    report.scope = around
    return True
