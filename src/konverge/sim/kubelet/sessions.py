"""`kubectl logs`, `exec`, `attach` and `port-forward`: what an API server passes on to the kubelet.

Logs and port-forward work for every pod (a simulated server may really listen on its pod's address); exec and attach
need a process, so they are for process pods alone. All but logs are WebSockets.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from konverge.apiserver import status
from konverge.sim.kubelet import logs
from konverge.wire import websocket
from konverge.wire.message import Producer, Response
from konverge.wire.websocket import WebSocket

if TYPE_CHECKING:
    from konverge.apiserver import ApiServer
    from konverge.apiserver.request.call import Call
    from konverge.sim.kubelet.agent import Kubelet

Obj = dict[str, Any]
Talk = Callable[[WebSocket], Awaitable[None]]

CHANNELS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
FORWARDING = ("SPDY/3.1+portforward.k8s.io", "v4.channel.k8s.io")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecOptions:
    """What is asked of a session."""

    command: Sequence[str] = ()
    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False


class Sessions(Protocol):
    """What a runtime of real processes offers beside running them."""

    def log(self, uid: str, container: str, query: Mapping[str, Sequence[str]]) -> Producer | None:
        """The log of a container that is a process; None for others. Raises ApiError."""

    def exec(self, uid: str, container: str, options: ExecOptions) -> Talk | None:
        """Run a command in a container; None when there is no such process."""

    def attach(self, uid: str, container: str, options: ExecOptions) -> Talk | None:
        """Follow a container's process; None when there is no such process."""


def plug_in(server: ApiServer, kubelet: Kubelet) -> None:
    server.extensions.logs = partial(_log, kubelet)
    for name in ("exec", "attach"):
        server.extensions.handlers["", "pods", name] = partial(_exec, kubelet, name)
    server.extensions.handlers["", "pods", "portforward"] = partial(_forward, kubelet)


def _log(kubelet: Kubelet, pod: Obj, container: str, query: Mapping[str, Sequence[str]]) -> Producer:
    producer = kubelet.runtime.log(pod["metadata"]["uid"], container, query) if kubelet.runtime is not None else None
    return producer or logs.producer(kubelet.machines.get(pod["metadata"]["uid"]), pod, container, query)


# ------------------------------------------------------------------ exec and attach


async def _exec(kubelet: Kubelet, what: str, call: Call) -> Response:
    pod = _pod(call)
    container = _container(call, pod)
    options = ExecOptions(
        command=call.query.get("command", []),
        stdin=_truth(call, "stdin"),
        stdout=_truth(call, "stdout"),
        stderr=_truth(call, "stderr"),
        tty=_truth(call, "tty"),
    )
    if what == "exec" and not options.command:
        raise status.bad_request("you must specify at least 1 command for the container")
    uid, runtime, talk = pod["metadata"]["uid"], kubelet.runtime, None
    if runtime is not None:
        talk = runtime.exec(uid, container, options) if what == "exec" else runtime.attach(uid, container, options)
    if talk is None:
        raise _no_process(pod, container, what)
    return _upgraded(call, CHANNELS, talk)


def _no_process(pod: Obj, container: str, what: str) -> status.ApiError:
    spec = pod["spec"]
    image = next(
        (
            declared.get("image")
            for declared in (*spec["containers"], *(spec.get("initContainers") or ()))
            if declared["name"] == container
        ),
        "",
    )
    return status.bad_request(
        f"container {container} of pod {pod['metadata']['name']} has no process to {what}: it is simulated or does not "
        f"run. To run it as a process, start the cluster with `konverge up --processes RULES` (Cluster(processes=…)) "
        f"and a rule for image {image!r}; see docs/process-pods.md"
    )


# ------------------------------------------------------------------ port-forward


async def _forward(kubelet: Kubelet, call: Call) -> Response:
    from konverge.sim.kubelet import forwarding  # few clusters ever forward a port

    pod = _pod(call)
    address = (pod.get("status") or {}).get("podIP", "")
    if pod["status"].get("phase") != "Running":
        raise status.bad_request(f"unable to forward port because pod is not running. Current status={_phase(pod)}")
    try:
        forwarding.check(address)
        ports = [int(text) for value in call.query.get("ports", ()) for text in value.split(",")]
    except ValueError as error:
        raise status.bad_request(str(error)) from None
    protocol = websocket.choose(call.request, FORWARDING)
    talk = partial(forwarding.by_channels if protocol == FORWARDING[1] else forwarding.by_streams, address, ports)
    return _upgraded(call, FORWARDING, talk)


def _phase(pod: Obj) -> str:
    return str((pod.get("status") or {}).get("phase", "Unknown"))


# ------------------------------------------------------------------ shared


def _pod(call: Call) -> Obj:
    """The pod, if the user may connect to it. A GET that becomes a WebSocket needs what a POST needs: create."""
    if call.info.verb == "get":
        info = copy(call.info)
        info.verb = "create"
        call.server.gate.authorize(call.user, info)
    pod = call.lookup("", "pods", call.info.namespace, call.info.name)
    if pod is None:
        raise status.not_found("", "pods", call.info.name)
    if not pod["spec"].get("nodeName"):
        raise status.bad_request(f"pod {call.info.name} does not have a host assigned")
    return pod


def _container(call: Call, pod: Obj) -> str:
    wanted = (call.query.get("container") or [""])[0]
    main = [container["name"] for container in pod["spec"]["containers"]]
    names = [*main, *(init_container["name"] for init_container in pod["spec"].get("initContainers") or ())]
    if wanted and wanted not in names:
        raise status.bad_request(f"container {wanted} is not valid for pod {call.info.name}")
    if not wanted and len(main) > 1:
        raise status.bad_request(
            f"a container name must be specified for pod {call.info.name}, choose one of: [{' '.join(main)}]"
        )
    return wanted or main[0]


def _truth(call: Call, name: str) -> bool:
    return (call.query.get(name) or [""])[0] in ("1", "t", "T", "true", "TRUE", "True")


def _upgraded(call: Call, protocols: Sequence[str], talk: Talk) -> Response:
    protocol = websocket.choose(call.request, protocols)
    if not protocol:
        raise status.bad_request(
            "unable to upgrade the connection: this server speaks WebSockets here, with the subprotocols "
            f"{', '.join(protocols)}; kubectl does so since 1.31"
        )
    try:
        return websocket.accept(call.request, protocol, talk)
    except websocket.HandshakeError as error:
        raise status.bad_request(f"unable to upgrade the connection: {error}") from None
