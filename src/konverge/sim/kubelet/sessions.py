"""`kubectl logs`, `exec`, `attach`, `port-forward` and proxies: what an API server passes on to nodes and pods.

Logs, port-forward and proxies work for every pod (a simulated server may really listen on its pod's address); exec
needs a process or a script (`konverge.sim.applications`), attach a process. exec and attach are WebSockets or SPDY,
port-forward is a WebSocket.

The log of a simulated container says when it began, and how it ended. Upstream: pkg/kubelet/server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from konverge.apiserver import status
from konverge.sim.kubelet import spdy_channels, websocket_channels
from konverge.sim.kubelet.channels import Channels
from konverge.sim.kubelet.containers import ContainerState, Mode
from konverge.sim.kubelet.status import time
from konverge.wire import websocket
from konverge.wire.message import Producer, Response, Sink

if TYPE_CHECKING:
    from konverge.apiserver import ApiServer
    from konverge.apiserver.request.call import Call
    from konverge.sim.kubelet.agent import Kubelet

Obj = dict[str, Any]
Query = Mapping[str, Sequence[str]]
Line = tuple[str, str]
"""A time and a text."""
Talk = Callable[[Channels], Awaitable[None]]

FORWARDING = ("SPDY/3.1+portforward.k8s.io", "v4.channel.k8s.io")


class ExecOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a session."""

    command: Sequence[str] = ()
    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False


class Sessions(Protocol):
    """What a runtime of real processes offers beside running them."""

    def log(self, uid: str, container: str, query: Query) -> Producer | None:
        """The log of a container that is a process; None for others. Raises ApiError."""

    def exec(self, uid: str, container: str, options: ExecOptions) -> Talk | None:
        """Run a command in a container; None when there is no such process."""

    def attach(self, uid: str, container: str, options: ExecOptions) -> Talk | None:
        """Follow a container's process; None when there is no such process."""


class Scripted(Protocol):
    """What answers commands in simulated containers."""

    def exec(self, pod: Obj, container: str, options: ExecOptions) -> Talk | None:
        """Answer a command that is run in a container that runs; None when no rule is about it."""


def plug_in(server: ApiServer, kubelet: Kubelet) -> None:
    server.extensions.logs = partial(_log, kubelet)
    for name in ("exec", "attach"):
        server.extensions.handlers["", "pods", name] = partial(_exec, kubelet, name)
    server.extensions.handlers["", "pods", "portforward"] = partial(_forward, kubelet)
    server.extensions.handlers["", "pods", "proxy"] = _proxied
    server.extensions.handlers["", "services", "proxy"] = _proxied


def _log(kubelet: Kubelet, pod: Obj, container: str, query: Query) -> Producer:
    producer = kubelet.runtime.log(pod["metadata"]["uid"], container, query) if kubelet.runtime is not None else None
    return producer or _simulated_log(kubelet, pod, container, query)


def _simulated_log(kubelet: Kubelet, pod: Obj, container: str, query: Query) -> Producer:
    """The log of a container, as the API server asks for it. Raises ApiError where a kubelet refuses."""
    uid = pod["metadata"]["uid"]
    machine = kubelet.machines.get(uid)
    state = machine.container(container) if machine is not None else None
    previous = is_true(query, "previous")
    if state is not None:
        refuse(state, pod["metadata"]["name"], previous)
    lines = _lines(state, previous) if state is not None else []
    tail = query.get("tailLines")
    if tail and tail[0]:
        lines = lines[len(lines) - min(int(tail[0]), len(lines)) :]
    stamped = is_true(query, "timestamps")
    text = "".join(f"{moment} {line}\n" if stamped else f"{line}\n" for moment, line in lines)
    limit = query.get("limitBytes")

    async def produce(sink: Sink) -> None:
        sink.write(text.encode()[: int(limit[0]) if limit and limit[0] else None])
        if state is None or previous or not is_true(query, "follow"):
            return
        run = state.runs
        while state.mode is Mode.RUNNING and state.runs == run:
            if kubelet.machines.get(uid) is not machine:
                return
            await kubelet.changed(uid)
        last = _lines(state, previous=state.runs != run)[-1:]  # how the run ended
        sink.write("".join(f"{moment} {line}\n" if stamped else f"{line}\n" for moment, line in last).encode())

    return produce


def refuse(container: ContainerState, pod: str, previous: bool) -> None:
    """A kubelet has no log of a run that has not been."""
    if previous:
        if container.last is None:
            raise status.bad_request(f'previous terminated container "{container.name}" in pod "{pod}" not found')
    elif container.mode in (Mode.NEW, Mode.WAITING) and container.runs == 0:
        raise status.bad_request(f'container "{container.name}" in pod "{pod}" is waiting to start: {container.reason}')


def _lines(container: ContainerState, previous: bool) -> list[Line]:
    run = container.last if previous or container.mode is Mode.WAITING else container.end
    number = container.runs - 1 if previous and container.mode is not Mode.WAITING else container.runs
    if container.mode is Mode.RUNNING and not previous:
        began = time(container.began)
        return [(began, f"{began} {container.name}: simulated run {container.runs} began")]
    if run is None:
        return []
    return [
        (time(run.began), f"{time(run.began)} {container.name}: simulated run {number} began"),
        (time(run.ended), f"{time(run.ended)} {container.name}: exit {run.code} ({run.reason})"),
    ]


# ------------------------------------------------------------------ exec and attach


async def _exec(kubelet: Kubelet, what: str, call: Call) -> Response:
    pod = _pod(call)
    container = _container(call, pod)
    options = ExecOptions(
        command=call.query.get("command", []),
        **{name: is_true(call.query, name) for name in ("stdin", "stdout", "stderr", "tty")},
    )
    if what == "exec" and not options.command:
        raise status.bad_request("you must specify at least 1 command for the container")
    uid, runtime, talk = pod["metadata"]["uid"], kubelet.runtime, None
    if runtime is not None:
        talk = runtime.exec(uid, container, options) if what == "exec" else runtime.attach(uid, container, options)
    if talk is None and what == "exec" and kubelet.scripted is not None and _runs(kubelet, uid, container):
        talk = kubelet.scripted.exec(pod, container, options)
    if talk is None:
        raise _no_process(pod, container, what)
    if spdy_channels.is_asked_for(call.request):
        expected = [name for name in ("stdin", "stdout", "stderr") if getattr(options, name)]
        return spdy_channels.accept(call.request, expected, talk)
    return websocket_channels.accept(call.request, talk)


def _runs(kubelet: Kubelet, uid: str, container: str) -> bool:
    machine = kubelet.machines.get(uid)
    state = machine.container(container) if machine is not None else None
    return state is not None and state.mode is Mode.RUNNING


def _no_process(pod: Obj, container: str, what: str) -> status.ApiError:
    spec = pod["spec"]
    declared = (*spec["containers"], *(spec.get("initContainers") or ()), *(spec.get("ephemeralContainers") or ()))
    image = next((entry.get("image") for entry in declared if entry["name"] == container), "")
    return status.bad_request(
        f"container {container} of pod {pod['metadata']['name']} has no process to {what}: it is simulated or does not "
        f"run. To run it as a process, start the cluster with `konverge up --processes RULES` (Cluster(processes=…)) "
        f"and a rule for image {image!r}; see docs/process-pods.md. To script its answers, write an exec rule; see "
        "docs/check/stand-ins.md"
    )


# ------------------------------------------------------------------ port-forward


async def _forward(kubelet: Kubelet, call: Call) -> Response:
    from konverge.sim.kubelet import forwarding  # few clusters ever forward a port

    pod = _pod(call)
    address, phase = pod["status"].get("podIP", ""), pod["status"].get("phase", "Unknown")
    if phase != "Running":
        raise status.bad_request(f"unable to forward port because pod is not running. Current status={phase}")
    try:
        forwarding.check(address)
        ports = [int(text) for value in call.query.get("ports", ()) for text in value.split(",")]
    except ValueError as error:
        raise status.bad_request(str(error)) from None
    protocol = websocket.choose(call.request, FORWARDING)
    if not protocol:
        raise status.bad_request(
            "unable to upgrade the connection: this server speaks WebSockets here, with the subprotocols "
            f"{', '.join(FORWARDING)}; kubectl does so since 1.31"
        )
    talk = partial(forwarding.by_channels if protocol == FORWARDING[1] else forwarding.by_streams, address, ports)
    try:
        return websocket.accept(call.request, protocol, talk)
    except websocket.HandshakeError as error:
        raise status.bad_request(f"unable to upgrade the connection: {error}") from None


async def _proxied(call: Call) -> Response:
    from konverge.sim.kubelet import proxying  # few clusters ever pass a request on

    return await proxying.pass_on(call)


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
    others = [*(pod["spec"].get("initContainers") or ()), *(pod["spec"].get("ephemeralContainers") or ())]
    names = [*main, *(container["name"] for container in others)]
    if wanted and wanted not in names:
        raise status.bad_request(f"container {wanted} is not valid for pod {call.info.name}")
    if not wanted and len(main) > 1:
        raise status.bad_request(
            f"a container name must be specified for pod {call.info.name}, choose one of: [{' '.join(main)}]"
        )
    return wanted or main[0]


def is_true(query: Query, name: str) -> bool:
    """As Go's strconv.ParseBool reads it."""
    return (query.get(name) or [""])[0] in ("1", "t", "T", "true", "TRUE", "True")
