"""apiregistration.k8s.io: APIService.

Upstream: k8s.io/kube-aggregator/pkg/apis/apiregistration/validation and registry/apiservice.
"""

from __future__ import annotations

from typing import Any

from konverge.apiserver.kinds.framework.declare import (
    Report,
    creation,
    field,
    items,
    number,
    one_of,
    section,
    struct,
    text,
    update,
)
from konverge.apiserver.kinds.framework.lifecycle import metadata_kept, status_kept
from konverge.apiserver.kinds.rules.defaults import section_of
from konverge.apiserver.kinds.rules.names import dns_1035, dns_subdomain, path_segment_name
from konverge.apiserver.kinds.rules.numbers import inclusive, within
from konverge.apiserver.meta.system import timestamp
from konverge.apiserver.strategy import Context, Obj, StatusRules, Strategy
from konverge.objects.names import path_segment_errors


def _defaults(obj: Obj) -> None:  # upstream: SetDefaults_ServiceReference
    service = section_of(obj, "spec").get("service")
    if service is not None and service.get("port") is None:
        service["port"] = 443


# upstream: apiServerStrategy.PrepareForCreate, NewLocalAvailableAPIServiceCondition
def _prepare_create(obj: Obj, context: Context) -> None:
    """An API that the server itself serves is always available."""
    obj["status"] = {}
    if obj["spec"].get("service") is None:
        detail = "Local APIServices are always available"
        condition = {"type": "Available", "status": "True", "lastTransitionTime": timestamp()}
        obj["status"] = {"conditions": [{**condition, "reason": "Local", "message": detail}]}


def _name(obj: Any, path: str, report: Report) -> bool:  # upstream: ValidateAPIService
    name, spec = obj["metadata"].get("name") or "", obj["spec"]
    expected = f"{spec.get('version') or ''}.{spec.get('group') or ''}"
    if not name or path_segment_errors(name) or name == expected:
        return True
    return report.invalid("metadata.name", name, f'must be `spec.version+"."+spec.group`: "{expected}"')


def _group(spec: Any, path: str, report: Report) -> bool:  # upstream: ValidateAPIService
    group = spec.get("group") or ""
    if group:
        return dns_subdomain(group, f"{path}.group", report)
    detail = "only v1 may have an empty group and it better be legacy kube"
    return spec.get("version") == "v1" or report.required(f"{path}.group", detail)


def _local(spec: Any, path: str, report: Report) -> bool:  # upstream: ValidateAPIService
    bundle, unsafe = spec.get("caBundle"), spec.get("insecureSkipTLSVerify")
    if bundle:
        size = len(bundle) * 3 // 4 - bundle.count("=")
        report.invalid(f"{path}.caBundle", f"{size} bytes", "local APIServices may not have a caBundle")
    detail = "local APIServices may not have insecureSkipTLSVerify"
    return not unsafe or report.invalid(f"{path}.insecureSkipTLSVerify", unsafe, detail)


def _service(spec: Any, path: str, report: Report) -> bool:  # upstream: ValidateAPIService
    service = spec.get("service")
    if service is None:
        return _local(spec, path, report)
    for name in ("namespace", "name"):
        if not service.get(name):
            report.required(f"{path}.service.{name}")
    port = service.get("port") or 0
    if not 0 < port < 65536:
        report.invalid(f"{path}.service.port", port, f"port is not valid: {inclusive(1, 65535)}")
    unsafe = spec.get("insecureSkipTLSVerify")
    detail = "may not be true if caBundle is present"
    return not (unsafe and spec.get("caBundle")) or report.invalid(f"{path}.insecureSkipTLSVerify", unsafe, detail)


_RULES = (  # upstream: ValidateAPIService
    _name,
    section(
        "spec",
        _group,
        text("version", dns_1035),
        number("groupPriorityMinimum", within(1, 20000, "must be positive and less than 20000")),
        number("versionPriority", within(1, 1000, "must be positive and less than 1000")),
        _service,
    ),
)
# upstream: ValidateAPIServiceStatus
_STATUS = section("status", field("conditions", items(struct(text("status", one_of("True", "False", "Unknown"))))))

STRATEGIES = {  # upstream: apiServerStrategy
    "APIService": Strategy(
        defaults=_defaults,
        prepare_create=_prepare_create,
        prepare_update=status_kept,
        validate_create=creation(*_RULES),
        validate_update=update(_RULES),
        status=StatusRules(prepare=metadata_kept, validate=update(_STATUS)),
        name_check=path_segment_name,
        unconditional_update=False,
    )
}
