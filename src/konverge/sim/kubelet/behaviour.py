"""The script of a simulated container: phrases in an annotation, or a rule that matches pods.

    metadata:
      annotations:
        sim.konverge.dev/behaviour: slow-start 20s
        sim.konverge.dev/behaviour: "exit 3 after 10s"
        sim.konverge.dev/behaviour: "web: never-ready; proxy: ready after 5s, stop 3s; setup: exit 1 2 times"

Phrases are separated by commas, containers by semicolons; a group without a container's name is for every ordinary
container of the pod. The phrases are the keys of `_PHRASES`. Without any word a container runs and is ready at once; an
init container succeeds at once, and so do the containers of a pod that is not always restarted, such as a Job's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import msgspec
from msgspec.structs import replace

from konverge.objects.durations import duration_seconds
from konverge.objects.kinds.core_v1 import Pod
from konverge.objects.meta import ObjectMeta

ANNOTATION = "sim.konverge.dev/behaviour"
ADDRESS = "sim.konverge.dev/ip"
"""The annotation that gives a pod its address: 127.0.0.1 for a server that listens there."""


class BehaviourError(ValueError):
    """A phrase that cannot be parsed; the message says which, and what is allowed."""


class Behaviour(msgspec.Struct, frozen=True, kw_only=True):
    """The script of one container. Times are seconds."""

    pull: float = 0.0
    pull_error: str = ""
    start: float = 0.0
    """From the pulled image to the running process."""
    age: float = 0.0
    """So much older the running process is shown: for those who ask only processes of some age."""
    ready_after: float | None = 0.0
    """From the running process until it answers; None: its readiness never does."""
    unready_after: float | None = None
    unhealthy_after: float | None = None
    """From here on liveness fails."""
    exit_code: int | None = None
    exit_after: float = 0.0
    exit_times: int | None = None
    """How many of its runs end so; None: all."""
    message: str = ""
    """What it writes to its termination message, when it ends as scripted."""
    stop: float | None = 0.0
    """How long it takes to end when asked to; None: it must be killed when the grace period is over."""


RUNS = Behaviour()
SUCCEEDS = Behaviour(exit_code=0)

_NAMED = re.compile(r"([a-z0-9-]+)\s*:\s*(.*)")


def _seconds(text: str) -> float:
    return float(duration_seconds(text))


def _exit(code: str, after: str | None, times: str | None) -> dict[str, Any]:
    return {
        "exit_code": int(code),
        "exit_after": _seconds(after) if after else 0.0,
        "exit_times": int(times) if times else None,
    }


_PHRASES: dict[str, tuple[str, Callable[..., dict[str, Any]]]] = {
    "slow-start 20s": (r"slow-start (\S+)", lambda t: {"start": _seconds(t)}),
    "started 15s ago": (r"started (\S+) ago", lambda t: {"age": _seconds(t)}),
    "pull 5s": (r"pull (\S+)", lambda t: {"pull": _seconds(t)}),
    "image-pull-error": (r"image-pull-error(?: (.+))?", lambda m: {"pull_error": m or "not found"}),
    "ready after 30s": (r"ready after (\S+)", lambda t: {"ready_after": _seconds(t)}),
    "never-ready": (r"never-ready", lambda: {"ready_after": None}),
    "unready after 1m": (r"unready after (\S+)", lambda t: {"unready_after": _seconds(t)}),
    "unhealthy after 1m": (r"unhealthy after (\S+)", lambda t: {"unhealthy_after": _seconds(t)}),
    "crash-loop after 5s": (r"crash-loop(?: after (\S+))?", lambda t: _exit("1", t, None)),
    "exit 3 after 10s 2 times": (r"exit (\d+)(?: after (\S+))?(?: (\d+) times?)?", _exit),
    "says done": (r"says (.+)", lambda text: {"message": text}),
    "runs": (r"runs", lambda: {"exit_code": None}),
    "stop 5s": (r"stop (\S+)", lambda t: {"stop": _seconds(t)}),
    "ignore-term": (r"ignore-term", lambda: {"stop": None}),
}


def parse(text: str, base: Behaviour = RUNS) -> Behaviour:
    """The phrases of one container.

    >>> parse("slow-start 20s, never-ready").start
    20.0
    """
    made = base
    for phrase in filter(None, (part.strip() for part in text.split(","))):
        made = replace(made, **_changes(phrase))
    return made


def _changes(phrase: str) -> dict[str, Any]:
    for pattern, make in _PHRASES.values():
        match = re.fullmatch(pattern, phrase)
        if match is None:
            continue
        try:
            return make(*match.groups())
        except ValueError as error:
            raise BehaviourError(f"{phrase!r}: {error}") from error
    raise BehaviourError(f"{phrase!r} is no behaviour; there are: {', '.join(_PHRASES)}")


def groups(text: str) -> dict[str, str]:
    """The phrases by container; those for every container are under the empty name."""
    by_name: dict[str, str] = {}
    for group in filter(None, (part.strip() for part in text.split(";"))):
        named = _NAMED.fullmatch(group)
        by_name[named[1] if named else ""] = named[2] if named else group
    return by_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Containers of pods: image and names by pattern, labels by value."""

    image: str = "*"
    namespace: str = "*"
    name: str = "*"
    container: str = "*"
    labels: Mapping[str, str] = field(default_factory=dict)

    def matches(self, meta: ObjectMeta, container: str, image: str) -> bool:
        return (
            fnmatchcase(image, self.image)
            and fnmatchcase(meta.namespace, self.namespace)
            and fnmatchcase(meta.name, self.name)
            and fnmatchcase(container, self.container)
            and all(meta.labels.get(key) == value for key, value in self.labels.items())
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Selector):
    """A behaviour for all pods that match.

    Rule(image="nacos/*", behave="slow-start 20s")
    """

    behave: str


def read_rules(document: Any) -> list[Rule]:
    """Rules as a rules file has them: a list of mappings with the members of `Rule`."""
    if not isinstance(document, list) or not all(isinstance(rule, dict) for rule in document):
        raise BehaviourError("a rules file is a list of mappings such as {image: 'nginx*', behave: slow-start 20s}")
    known = set(Rule.__dataclass_fields__)
    for rule in document:
        if "behave" not in rule or not set(rule) <= known:
            raise BehaviourError(
                f"the rule {rule} needs `behave`, and may have {', '.join(sorted(known - {'behave'}))}"
            )
        for phrases in groups(rule["behave"]).values():
            parse(phrases)
    return [Rule(**rule) for rule in document]


def behaviours(pod: Pod, rules: Iterable[Rule] = ()) -> dict[str, Behaviour]:
    """What each container of a pod does. The pod's own annotation goes before rules. Raises BehaviourError."""
    own = groups(pod.metadata.annotations.get(ANNOTATION, ""))
    scripts: dict[str, Behaviour] = {}
    for container in pod.spec.init_containers:
        base = RUNS if container.restart_policy == "Always" else SUCCEEDS
        text = own.get(container.name) or _ruled(pod, container.name, container.image or "", rules, init=True)
        scripts[container.name] = parse(text, base)
    for container in pod.spec.containers:
        text = own.get(container.name) or own.get("") or _ruled(pod, container.name, container.image or "", rules)
        restarts = container.restart_policy or pod.spec.restart_policy or "Always"
        scripts[container.name] = parse(text, RUNS if restarts == "Always" else SUCCEEDS)
    return scripts


def _ruled(pod: Pod, container: str, image: str, rules: Iterable[Rule], *, init: bool = False) -> str:
    for rule in rules:
        if rule.matches(pod.metadata, container, image) and not (init and rule.container == rule.image == "*"):
            return groups(rule.behave).get(container) or groups(rule.behave).get("", "")
    return "image-pull-error no such host" if _is_nowhere(image) else ""


def _is_nowhere(image: str) -> bool:
    """Whether its registry has a name that no host can have (RFC 2606)."""
    return image.partition("/")[0].partition(":")[0].endswith(".invalid")
