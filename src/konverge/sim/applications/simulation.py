"""The `--simulate` file: what stands in for the programs that an operator's pods would run.

    pods:                                   # as `konverge up --rules` has them
      - {image: "*zookeeper*", behave: "ready after 1s"}
    exec:
      - {image: "rabbitmq*", command: "*rabbitmqctl*", stdout: "", exit: 0}
    writes:
      - {container: mongodb-agent, annotations: {agent.mongodb.com/version: "{config.version}"}, …}
    servers:
      - {name: zookeeper, image: "*zookeeper*", kind: zookeeper}

docs/check/stand-ins.md documents every member. Unknown members are errors: a rule with a typing error would never
apply, and the check would blame the operator.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from konverge.sim.applications import values
from konverge.sim.kubelet.behaviour import BehaviourError, Rule, Selector, read_rules


class SimulationError(ValueError):
    """The file cannot be used; the text says where, and what to write."""


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class _Pods(_Strict, frozen=True, kw_only=True):
    """Which containers of which pods."""

    image: str = "*"
    namespace: str = "*"
    name: str = "*"
    container: str = "*"
    labels: dict[str, str] = {}

    @property
    def selector(self) -> Selector:
        return Selector(
            image=self.image, namespace=self.namespace, name=self.name, container=self.container, labels=self.labels
        )


class Answer(_Strict, frozen=True, kw_only=True):
    """One answer to a command."""

    stdout: str = ""
    stderr: str = ""
    exit: int = 0


class ExecRule(_Pods, frozen=True, kw_only=True):
    """Commands that match, and what they print."""

    command: str = "*"
    """A pattern over the words of the command, with blanks between them."""
    stdout: str = ""
    stderr: str = ""
    exit: int = 0
    answers: tuple[Answer, ...] = ()
    """By occurrence in this pod, instead of the three above; the last one stays."""
    server: str = ""
    """A server of this file answers instead."""


class Source(_Strict, frozen=True, kw_only=True):
    """An object that a value refers to."""

    kind: Literal["Secret", "ConfigMap"]
    name: str
    """May have references to pod, owner and root."""
    key: str = ""
    """One entry of its data; without it, all of them."""
    parse: Literal["text", "json"] = "text"


class WriteRule(_Pods, frozen=True, kw_only=True):
    """What a program in the pod writes to its own pod by the API."""

    when: Literal["running", "ready"] = "running"
    annotations: dict[str, str] = {}
    labels_set: dict[str, str] = msgspec.field(default_factory=dict, name="set-labels")
    conditions: dict[str, Literal["True", "False"]] = {}
    """Conditions of the pod's status, such as readiness gates."""
    sources: dict[str, Source] = msgspec.field(default_factory=dict, name="from")


class Reply(_Strict, frozen=True, kw_only=True):
    """One line of an HTTP table."""

    path: str
    """A pattern; the query counts only when the pattern has a `?`."""
    method: str = "*"
    status: int = 200
    headers: dict[str, str] = {}
    body: str = ""
    when: dict[str, str] = {}
    """Applies while these variables have these values."""
    set: dict[str, str] = {}
    """Gives variables values; `{body.field}` refers to the request's JSON body."""


class ServerRule(_Pods, frozen=True, kw_only=True):
    """A server that listens on the addresses of the pods that match."""

    name: str = "*"
    kind: str = ""
    """One of those that come with Konverge."""
    python: str = ""
    """`module:Class`, a subclass of `Application`."""
    server: str = ""
    """Its name for faults; by default its kind."""
    ports: tuple[int | str, ...] = ()
    """Numbers, or names of the container's ports; by default those of its kind."""
    group: str = "{root.metadata.name}"
    """Pods of one namespace with the same text here share one application."""
    table: tuple[Reply, ...] = ()
    """Of kind http."""
    settings: dict[str, Any] = msgspec.field(default_factory=dict, name="with")
    slow: float = 30.0
    """Seconds that the fault `slow` lasts for each connection."""

    @property
    def title(self) -> str:
        return self.server or self.kind or self.python.rpartition(":")[2].lower()


class Simulation(_Strict, frozen=True, kw_only=True):
    """A whole file."""

    pods: list[Any] = []
    exec: tuple[ExecRule, ...] = ()
    writes: tuple[WriteRule, ...] = ()
    servers: tuple[ServerRule, ...] = ()

    @property
    def rules(self) -> list[Rule]:
        return read_rules(self.pods)


_KNOWN: dict[str, type[msgspec.Struct]] = {
    "exec": ExecRule,
    "writes": WriteRule,
    "servers": ServerRule,
    "answers": Answer,
    "from": Source,
    "table": Reply,
}
REFERENCES = ("pod", "owner", "root")


def load_simulation(path: Path) -> Simulation:
    """Read a file. Raises SimulationError, and OSError."""
    return parse_simulation(path.read_text(encoding="utf-8"), str(path))


def parse_simulation(text: str, origin: str = "the simulate file") -> Simulation:
    """A simulate file's text. Raises SimulationError."""
    import yaml

    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise SimulationError(f"{origin} is no YAML: {error}") from error
    try:
        return read_simulation(document if document is not None else {})
    except SimulationError as error:
        raise SimulationError(f"{origin}: {error}") from error


def read_simulation(document: Any) -> Simulation:
    """A simulate file's content. Raises SimulationError.

    >>> read_simulation({"exec": [{"command": "*rabbitmqctl*"}]}).exec[0].exit
    0
    """
    if not isinstance(document, dict):
        raise SimulationError("a simulate file is a mapping with some of: pods, exec, writes, servers")
    try:
        simulation = msgspec.convert(document, Simulation)
        simulation.rules  # noqa: B018 - reading them checks them
    except BehaviourError as error:
        raise SimulationError(f"pods: {error}") from error
    except msgspec.ValidationError as error:
        raise SimulationError(_explained(str(error))) from error
    for number, rule in enumerate(simulation.servers):
        _check_server(rule, f"servers[{number}]")
    titles = {rule.title for rule in simulation.servers}
    for number, command in enumerate(simulation.exec):
        if command.server and command.server not in titles:
            known = ", ".join(sorted(titles)) or "none"
            raise SimulationError(
                f"exec[{number}]: there is no server {command.server!r} in this file; there are: {known}"
            )
    for number, write in enumerate(simulation.writes):
        _check_write(write, f"writes[{number}]")
    return simulation


def _explained(text: str) -> str:
    """msgspec's message, with the members that may stand there."""
    match = re.fullmatch(r"Object contains unknown field `(.+?)`(?: - at `\$\.?(.*)`)?", text)
    if match is None:
        return text.replace("$.", "")
    field, place = match[1], match[2] or ""
    parts = [part for part in re.split(r"[.\[]", place) if part and not part.endswith("]") and not part.isdigit()]
    struct = next((_KNOWN[part] for part in reversed(parts) if part in _KNOWN), Simulation)
    known = sorted(info.encode_name for info in msgspec.structs.fields(struct))
    near = difflib.get_close_matches(field, known, n=1)
    hint = f"; did you mean `{near[0]}`?" if near else ""
    return f"{place or 'the file'}: there is no member `{field}`{hint} Known are: {', '.join(known)}"


def _check_server(rule: ServerRule, place: str) -> None:
    from konverge.sim.applications.kinds import KINDS, application_class

    if bool(rule.kind) == bool(rule.python):
        raise SimulationError(f"{place} needs `kind` (one of {', '.join(KINDS)}) or `python: module:Class`, not both")
    try:
        made = application_class(rule)
    except (LookupError, ImportError, AttributeError, TypeError) as error:
        raise SimulationError(f"{place}: {error}") from error
    if not (rule.ports or made.ports):
        raise SimulationError(f"{place} needs `ports`: numbers, or names of the container's ports")
    if rule.table and rule.kind != "http":
        raise SimulationError(f"{place}: `table` is for kind http; write `with` for settings of other kinds")
    _check_texts({"group": rule.group}, REFERENCES, place)


def _check_write(rule: WriteRule, place: str) -> None:
    if not (rule.annotations or rule.labels_set or rule.conditions):
        raise SimulationError(f"{place} writes nothing: it needs `annotations`, `set-labels` or `conditions`")
    for name, source in rule.sources.items():
        _check_texts({f"from.{name}.name": source.name}, REFERENCES, place)
    _check_texts({**rule.annotations, **rule.labels_set}, (*REFERENCES, *rule.sources), place)


def _check_texts(texts: Mapping[str, str], names: tuple[str, ...], place: str) -> None:
    for key, text in texts.items():
        try:
            values.check(text, dict.fromkeys(names))
        except ValueError as error:
            raise SimulationError(f"{place}, {key}: {error}") from error
