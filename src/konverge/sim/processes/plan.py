"""How one run of a container is started: its command, environment and folders, made from its spec and its rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from konverge.objects.kinds.core_v1 import Container
from konverge.sim.processes import roots
from konverge.sim.processes.disk import TERMINATION_LOG, Mounts, clean
from konverge.sim.processes.environment import ConfigError, Self, expand
from konverge.sim.processes.images import Image
from konverge.sim.processes.isolation import Isolation, View
from konverge.sim.processes.process import MARK
from konverge.sim.processes.rules import ARGS, ProcessRule, fill_in

ALWAYS_PASSED = ("PATH", "HOME", "LANG")


@dataclass(frozen=True, slots=True)
class Plan:
    spec: Container
    rule: ProcessRule
    mounts: Mounts
    env: Mapping[str, str]
    command: Sequence[str]
    named: Sequence[str]
    """What of the command is the rule's."""
    cwd: Path
    view: View | None = None
    """What it sees of this machine, if it is isolated."""

    def own_arguments(self, arguments: Sequence[str]) -> list[str]:
        """A command of the container's own (a probe, a hook), as it is to be run here."""
        return [self.mounts.translate(word) if self.rule.translate else word for word in arguments]


@dataclass(frozen=True, slots=True)
class Place:
    """The files whose paths a container of the pod gets."""

    volumes: Path
    hosts: Path
    kubeconfig: Path


def base_env(
    rule: ProcessRule, ours: Mapping[str, str], itself: Self, image: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What a process has before its container says anything; of ours, only what is passed on. An image has its own."""
    always = ALWAYS_PASSED if image is None else ()
    passed = {name: ours[name] for name in (*always, *rule.pass_env) if name in ours}
    return {**(image or {}), **passed, "HOSTNAME": itself.hostname, "POD_IP": itself.pod_ip}


def make(
    spec: Container,
    rule: ProcessRule,
    itself: Self,
    mounts: Mounts,
    env: Mapping[str, str],
    place: Place,
    image: Image | None = None,
) -> Plan:
    """`env` is what the container's spec leads to, on top of `base_env`. Raises ConfigError.

    The container was checked before: `permitted`.
    """
    texts = _Templates(spec, itself, mounts, env, place)
    if rule.translate:
        env = {name: mounts.translate(value) for name, value in env.items()}
    mark = {MARK: f"{itself.pod.metadata.uid}/{spec.name}"}
    whole = {**env, **{name: texts(value) for name, value in rule.env.items()}, **mark}
    own = [expand(word, whole) for word in spec.command]
    args = [expand(word, whole) for word in spec.args]
    if rule.translate:
        own, args = [mounts.translate(word) for word in own], [mounts.translate(word) for word in args]
    named = [texts(word) for word in rule.command]
    command = _command(rule, named, own, args)
    if image is not None and not rule.command and not (own and rule.runs_anything):
        command = roots.command(image, command)
    return Plan(spec, rule, mounts, whole, command, named, _cwd(spec, rule, mounts, texts, image))


def view(
    isolation: Isolation, plan: Plan, itself: Self, folders: Mapping[str, tuple[Path, bool]], place: Place
) -> View:
    """What the process sees: the volumes that it mounts or that its rule names, its root, its own files."""
    mounted = {mount.name for mount in plan.spec.volume_mounts}
    read = [place.hosts.parent, place.kubeconfig, plan.mounts.home / "subpaths"]
    written = [plan.mounts.root, plan.mounts.home / "termination-log"]
    if plan.rule.names("{volumes}"):
        read.append(place.volumes)
    for name, (folder, of_objects) in folders.items():
        if name in mounted or plan.rule.names("{volumes}") or plan.rule.names(f"{{volume:{name}}}"):
            (read if of_objects else written).append(folder)
    return isolation.view(itself.pod.metadata.namespace, plan.rule.files, read, written)


def _command(rule: ProcessRule, ours: Sequence[str], own: Sequence[str], args: Sequence[str]) -> list[str]:
    if rule.container_command == "replace" and own:
        return [*own, *args]
    command: list[str] = []
    given = list(args) if rule.container_args == "append" else []
    placed = False
    for template, word in zip(rule.command, ours, strict=True):
        if template == ARGS:
            command, placed = command + given, True
        else:
            command.append(word)
    if rule.container_command == "append":
        command += own
    return command if placed else command + given


def _cwd(spec: Container, rule: ProcessRule, mounts: Mounts, texts: _Templates, image: Image | None) -> Path:
    if rule.workdir:
        return Path(texts(rule.workdir))
    if image is not None:
        return Path(clean(roots.workdir(spec, image)))
    if spec.working_dir and mounts.is_mounted(spec.working_dir):
        return mounts.locate(spec.working_dir)
    return mounts.make_folder(spec.working_dir or "/")


class _Templates:
    """Fills in a rule's templates for one container."""

    def __init__(self, spec: Container, itself: Self, mounts: Mounts, env: Mapping[str, str], place: Place) -> None:
        meta = itself.pod.metadata
        self._spec = spec
        self._plain = {
            "pod_ip": itself.pod_ip,
            "pod_name": meta.name,
            "pod_uid": meta.uid,
            "namespace": meta.namespace,
            "hostname": itself.hostname,
            "node_name": itself.pod.spec.node_name or "",
            "host_ip": itself.host_ip,
            "container": spec.name,
            "image": spec.image or "",
            "root": "/" if mounts.in_place else str(mounts.root),
            "volumes": str(place.volumes),
            "hosts": "/etc/hosts" if mounts.in_place else str(place.hosts),
            "kubeconfig": str(place.kubeconfig),
            "termination_log": clean(spec.termination_message_path or TERMINATION_LOG)
            if mounts.in_place
            else str(mounts.home / "termination-log"),
        }
        self._with_argument: dict[str, Callable[[str], str]] = {
            "port": self._port,
            "mount": lambda path: str(mounts.locate(path)),
            "volume": lambda name: str((place.volumes / name).resolve()),  # one in memory is elsewhere
            "env": lambda name: env.get(name, ""),
        }

    def __call__(self, text: str) -> str:
        return text if text == ARGS else fill_in(text, self._plain, self._with_argument)

    def _port(self, name: str) -> str:
        for port in self._spec.ports:
            if port.name == name:
                return str(port.container_port)
        known = ", ".join(port.name for port in self._spec.ports if port.name) or "none with a name"
        raise ConfigError(f"the image's process rule asks for port {name!r}; the container has {known}")
