"""What goes through to nodes: logs, exec, attach, port-forward, proxies.

There are no kubelets here, so most of it is refused as the real server refuses it for a pod without a node. A
simulation plugs in its own handlers and its logs (`Extensions`).
"""

from __future__ import annotations

from konverge.apiserver import field_errors, status
from konverge.apiserver.field_errors import FieldError
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.http import options, over_websocket, respond
from konverge.apiserver.request.call import Call
from konverge.apiserver.strategy import Obj
from konverge.wire import websocket
from konverge.wire.message import Headers, Response


def _pod(call: Call) -> Obj:
    pod = call.lookup("", "pods", call.info.namespace, call.info.name)
    if pod is None:
        raise status.not_found("", "pods", call.info.name)
    return pod


async def log(call: Call) -> Response:
    """GET pods/log."""
    _check_log_options(call)
    pod = _pod(call)
    container = _container(call, pod)
    if not pod["spec"].get("nodeName"):
        return Response(204, Headers([(b"audit-id", call.audit_id.encode()), (b"cache-control", b"no-cache, private")]))
    logs = call.server.extensions.logs
    if logs is None:
        raise _unreachable(f'Get "https://{pod["spec"]["nodeName"]}:10250/containerLogs": no kubelet serves logs here')
    producer = logs(pod, container, call.query)
    if websocket.is_asked_for(call.request):
        return over_websocket.log(call.request, producer)
    headers = respond.headers(call, (b"content-type", b"text/plain"))
    return Response(200, Headers(headers), producer=producer)


def _check_log_options(call: Call) -> None:  # upstream: ValidatePodLogOptions (pkg/apis/core/validation)
    errors: list[FieldError] = []
    for name, least in (("tailLines", 0), ("limitBytes", 1), ("sinceSeconds", 1)):
        value = options.number(call.query, name)
        if value is not None and value < least:
            detail = "must be greater than or equal to 0" if least == 0 else "must be greater than 0"
            errors.append(field_errors.invalid(name, value, detail))
    if "sinceTime" in call.query and "sinceSeconds" in call.query:
        errors.append(field_errors.forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    if errors:
        raise status.invalid("", "PodLogOptions", call.info.name, errors)


def _container(call: Call, pod: Obj) -> str:  # upstream: validateContainer (pkg/registry/core/pod/strategy.go)
    """The container of the request: the one that it names, or the only one."""
    wanted = options.text(call.query, "container")
    spec = pod["spec"]
    groups = ("containers", "initContainers", "ephemeralContainers")
    names = [container["name"] for group in groups for container in spec.get(group) or ()]
    name = pod["metadata"]["name"]
    if wanted:
        if wanted not in names:
            raise status.bad_request(f"container {wanted} is not valid for pod {name}")
        return wanted
    main = [container["name"] for container in spec["containers"]]
    if len(main) == 1:
        return str(main[0])
    inits = [container["name"] for container in spec.get("initContainers") or ()]
    more = f" or one of the init containers: [{' '.join(inits)}]" if inits else ""
    raise status.bad_request(
        f"a container name must be specified for pod {name}, choose one of: [{' '.join(main)}]{more}"
    )


async def exec_or_attach(call: Call) -> Response:  # upstream: streamLocation (pkg/registry/core/pod/strategy.go)
    pod = _pod(call)
    if not pod["spec"].get("nodeName"):
        raise status.bad_request(f"pod {call.info.name} does not have a host assigned")
    if call.lookup("", "nodes", "", pod["spec"]["nodeName"]) is None:
        raise status.not_found("", "pods", pod["spec"]["nodeName"])  # the real server confuses the two here
    raise _unreachable("no kubelet runs commands here")


async def pod_proxy(call: Call) -> Response:
    _pod(call)
    raise _unreachable("no pod network to proxy to")


async def service_proxy(call: Call) -> Response:
    name = call.info.name
    raise status.ApiError(503, "ServiceUnavailable", f"no endpoints available for service {quote(name)}")


async def node_proxy(call: Call) -> Response:
    name = call.info.name
    if call.lookup("", "nodes", "", name) is None:
        raise status.not_found("", "nodes", name)
    raise _unreachable("no kubelet to proxy to")


def _unreachable(why: str) -> status.ApiError:
    return status.ApiError(503, "ServiceUnavailable", f"error trying to reach service: {why}")
