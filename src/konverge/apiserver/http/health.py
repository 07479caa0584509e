"""Health, version and metrics of the server."""

from __future__ import annotations

from typing import Any

import msgspec

from konverge.apiserver import status
from konverge.apiserver.flow_control.metrics import exposition
from konverge.apiserver.http import negotiate, render, respond
from konverge.apiserver.http.routes import CHECKS
from konverge.apiserver.kubernetes_version import KUBERNETES_VERSION, MAJOR, MINOR
from konverge.apiserver.request.call import Call
from konverge.apiserver.storage.failures import Lost
from konverge.wire.message import Headers, Response

_OF_THE_STORE = ("etcd", "etcd-readiness")
_JSON = (negotiate.JSON, "application/*", "*/*")
VERSION = {
    "major": MAJOR,
    "minor": MINOR,
    "emulationMajor": MAJOR,
    "emulationMinor": MINOR,
    "minCompatibilityMajor": MAJOR,
    "minCompatibilityMinor": str(int(MINOR) - 1),
    "gitVersion": f"v{KUBERNETES_VERSION}",  # as it is: kubectl --match-server-version compares it
    "gitCommit": "konverge",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "",
}
_METRICS_TYPE = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8; escaping=underscores")


async def version(call: Call) -> Response:
    if call.info.method != "GET":
        raise status.method_not_allowed()
    accept = call.request.headers.get("accept")
    if accept and not any(clause.media in _JSON for clause in negotiate.clauses(accept)):
        message = "406: Not Acceptable\n\nAvailable representations: application/json"
        raise status.not_acceptable(message, details={})
    return respond.whole(call, 200, msgspec.json.format(msgspec.json.encode(VERSION), indent=2))


async def all_checks(call: Call) -> Response:
    """All checks of one path; a client can list them, and exclude some by name.

    Upstream: apiserver/pkg/server/healthz/healthz.go. There /livez fails with etcd, too; here a restart is no cure
    for a full disk, and memory still answers reads, so /livez only shows it.
    """
    name = call.info.path.strip("/")
    checks, left_out = CHECKS[name], call.query.get("exclude", [])
    failed = [check for check in checks if check not in left_out and _fails(call, check)]
    passes = not failed or (name == "livez" and not isinstance(call.server.store.failure, Lost))
    if "verbose" not in call.query and passes:
        return respond.answer_text(call, 200, "ok")
    lines = [_line(check, left_out, failed) for check in checks]
    unknown = [check for check in left_out if check not in checks]
    if unknown:
        quoted = ",".join(f'"{check}"' for check in unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {quoted}")
    if not passes:
        return respond.answer_text(call, 500, "\n".join([*lines, f"{name} check failed\n"]))
    return respond.answer_text(call, 200, "\n".join([*lines, f"{name} check passed\n"]))


async def single_check(call: Call) -> Response:
    if _fails(call, call.info.path.partition("z/")[2]):
        return respond.answer_text(call, 500, f"internal server error: {call.server.store.failure}\n")
    return respond.answer_text(call, 200, "ok")


def _fails(call: Call, check: str) -> bool:
    """The store is what clients know as etcd."""
    return check in _OF_THE_STORE and call.server.store.failure is not None


def _line(check: str, left_out: list[str], failed: list[str]) -> str:
    if check in failed:
        return f"[-]{check} failed: reason withheld"
    return f"[+]{check} {'excluded: ok' if check in left_out else 'ok'}"


async def metrics(call: Call) -> Response:
    """Prometheus text: the sizes of the store, and requests where they are counted."""
    store = call.server.store
    lines = ["# HELP apiserver_storage_objects Number of stored objects.", "# TYPE apiserver_storage_objects gauge"]
    for name, table in sorted(store.tables.items()):
        group, _, plural = name.rpartition("/")
        lines.append(f'apiserver_storage_objects{{group="{group}",resource="{plural}"}} {len(table.records)}')
    lines += [
        "# HELP konverge_apiserver_revision The store's revision.",
        "# TYPE konverge_apiserver_revision counter",
        f"konverge_apiserver_revision {store.durable}",
        "# HELP konverge_apiserver_watchers Open watches.",
        "# TYPE konverge_apiserver_watchers gauge",
        f"konverge_apiserver_watchers {len(call.server.streams)}",
    ]
    lines += exposition(call.server.flows)
    if (counts := call.server.extensions.counts) is not None:
        lines += counts.exposition()
    body = "\n".join(lines) + "\n"
    return Response(200, Headers(respond.headers(call, _METRICS_TYPE)), body.encode())


# Upstream: the validators of componentstatuses (pkg/registry/core/rest/storage_core.go).
COMPONENTS = ("scheduler", "controller-manager", "etcd-0")


def _component(name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "conditions": [{"type": "Healthy", "status": "True", "message": "ok"}],
    }


async def component_statuses(call: Call) -> Response:
    """A deprecated resource that asks the parts of a control plane how they are: here they are all this process."""
    name, served = call.info.name, call.resource
    accepted = respond.settle_form(call)
    negotiate.check_form(accepted, served.go_type if name else f"{served.go_type}List", listed=not name)
    if name and name not in COMPONENTS:
        raise status.not_found("", "componentstatuses", name)
    items = [_component(component) for component in COMPONENTS if name in ("", component)]
    if accepted.form == "Table":
        include = render.include_object(call)
        table = render.table(call.server.tables, served, items, {}, accepted.version, include, listed=not name)
        return respond.answer(call, 200, table)
    shown: Any = {"kind": "ComponentStatus", "apiVersion": "v1"}
    if accepted.form:
        items = [render.partial(item, accepted.version) for item in items]
        shown = {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{accepted.version}"}
    if name:
        return respond.answer(call, 200, {**shown, **items[0]})
    return respond.answer(call, 200, {**shown, "kind": f"{shown['kind']}List", "metadata": {}, "items": items})
