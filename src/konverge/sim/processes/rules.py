"""Which images run as which local commands.

    - image: "web:*"
      command: [python3, -m, http.server, "{port:http}", --bind, "{pod_ip}"]
      container_args: ignore
      env: {APP_CONF: "{mount:/etc/app}"}

A rule's `command` stands for the image's entrypoint: what a container itself says is appended, put in its place, or
ignored, as the rule says. The first rule that matches counts; a container without one stays simulated.

Texts of a rule may have templates: `{pod_ip}`, `{port:http}`, `{mount:/etc/app}`; braces themselves are `{{` and `}}`.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

PLAIN = {
    "pod_ip": "the pod's address: listen there",
    "pod_name": "the pod's name",
    "pod_uid": "the pod's uid",
    "namespace": "the pod's namespace",
    "hostname": "the pod's hostname",
    "node_name": "the node's name",
    "host_ip": "the node's address",
    "container": "the container's name",
    "image": "the container's image",
    "root": "a folder that stands for the container's /",
    "volumes": "the folder with the pod's volumes, each under its name",
    "hosts": "a file as /etc/hosts, with the names of pods and services, kept up to date",
    "kubeconfig": "a kubeconfig for the pod's service account",
    "termination_log": "the file whose text becomes the message of the container's end",
}
WITH_ARGUMENT = {
    "port": "a container port by its name",
    "mount": "what stands for a path in the container",
    "volume": "the folder of a volume",
    "env": "a variable of the container",
}
ARGS = "{args}"
"""As an element of a command: the container's args, one by one."""

_TEMPLATE = re.compile(r"\{\{|\}\}|\{([a-z_]+)(?::([^{}]*))?\}|[{}]")


class TemplateError(ValueError):
    """A template that says nothing; the text says what could stand there."""


def check_template(text: str) -> None:
    """Raises TemplateError."""
    if text != ARGS:
        fill_in(text, dict.fromkeys(PLAIN, ""), {name: lambda argument: "" for name in WITH_ARGUMENT})


def fill_in(text: str, plain: Mapping[str, str], with_argument: Mapping[str, Callable[[str], str]]) -> str:
    """
    >>> fill_in("{pod_ip}:{port:http} {{}}", {"pod_ip": "127.1.0.1"}, {"port": lambda name: "80"})
    '127.1.0.1:80 {}'
    """

    def value(match: re.Match[str]) -> str:
        whole, name, argument = match[0], match[1], match[2]
        if whole in ("{{", "}}"):
            return whole[0]
        if name in plain and argument is None:
            return plain[name]
        if name in with_argument and argument:
            return with_argument[name](argument)
        known = [f"{{{template}}}" for template in PLAIN] + [f"{{{template}:…}}" for template in WITH_ARGUMENT]
        raise TemplateError(
            f"{whole!r} in {text!r} is no template; write {{{{ for a brace; there are {' '.join(known)}"
        )

    return _TEMPLATE.sub(value, text)


_ON_COMMAND = ("ignore", "append", "replace")
_ON_ARGS = ("refuse", "append", "ignore")
_NETWORKS = ("host", "pod")


class RuleError(ValueError):
    """A rule that cannot be followed; the text says what to write instead."""


class RunningAsRoot(RuntimeError):
    """Process pods would run as root; the text says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRule:
    """How the containers of an image run on this machine. Texts may have templates.

    ProcessRule(image="web:*", command=("python3", "-m", "http.server", "{port:http}", "--bind", "{pod_ip}"))
    """

    image: str
    """A pattern such as `nacos/nacos-server:*`."""
    namespace: str = "*"
    container: str = "*"
    root: str = ""
    """The container's `/`: a folder, or an image (a folder or archive in the layout of the OCI, of `docker save`, or of
    a plain file system). Such a container has its mounts at their paths, and sees nothing else of this machine."""
    network: str = "host"
    """`pod` gives pods whose containers all have a `root` a network of their own, where this machine can; `host` is
    this machine's."""
    command: Sequence[str] = ()
    container_command: str = ""
    """What becomes of a container's own `command`: ignore it, append it, or replace the rule's by it. By default it is
    ignored, but for a container with a `root`, where it replaces the rule's."""
    container_args: str = ""
    """What becomes of a container's `args`: append them (or put them where `{args}` stands), ignore them, or refuse the
    container that has some. By default they are refused, unless `{args}` is in the command or the container's own
    command replaces it."""
    container_env: Sequence[str] = ()
    """Variables that a container may set although they can change what code runs (`permitted.LOADERS`), as patterns."""
    container_exec: bool = False
    """Run the commands that a container's probes and hooks name; without it such a container is refused."""
    mounts: Sequence[str] = ()
    """Paths and patterns where a container may have mounts, besides those that a `{mount:…}` names."""
    env: Mapping[str, str] = field(default_factory=dict)
    """More variables; they win over the container's."""
    pass_env: Sequence[str] = ()
    """Variables of our own environment that the process may see, besides PATH, HOME and LANG."""
    workdir: str = ""
    """Where it starts; by default a folder of the container's own, or the mount that its `workingDir` names."""
    translate: bool = False
    """Replace mount paths by the folders that stand for them in the container's own command, args, env and probes."""
    host_paths: Sequence[str] = ()
    """Folders of this machine that hostPath volumes may use; none by default."""
    files: Sequence[str] = ()
    """What an isolated process sees, read-only, of folders that are hidden otherwise: the home, /tmp, /run."""
    isolated: bool = True
    """Isolate the process, where this machine can."""
    enforce_memory: bool = False
    """Kill a container whose processes hold more memory than its limit, as OOMKilled; looked at twice a second."""
    stop_signal: str = "SIGTERM"

    def __post_init__(self) -> None:
        if not self.container_command:
            object.__setattr__(self, "container_command", "replace" if self.root else "ignore")
        if not self.container_args:
            allowed = self.runs_anything or ARGS in self.command
            object.__setattr__(self, "container_args", "append" if allowed else "refuse")

    def matches(self, namespace: str, container: str, image: str) -> bool:
        return (
            fnmatchcase(image, self.image)
            and fnmatchcase(namespace, self.namespace)
            and fnmatchcase(container, self.container)
        )

    @property
    def runs_anything(self) -> bool:
        """Whether a pod may choose the command itself; nothing else is worth refusing then."""
        return self.container_command == "replace"

    def names(self, template: str) -> bool:
        """Whether a text of it has this template."""
        return any(match[0] == template for text in self._texts() for match in _TEMPLATE.finditer(text))

    def named_mounts(self) -> list[str]:
        """The paths of the rule's `{mount:…}` templates."""
        matches = (match for text in self._texts() for match in _TEMPLATE.finditer(text))
        return [match[2] for match in matches if match[1] == "mount" and match[2]]

    def _texts(self) -> Sequence[str]:
        return (*self.command, *self.env.values(), self.workdir)

    def check(self) -> None:
        """Raises RuleError."""
        if self.root:
            self._check_root()
        elif not self.command and self.container_command != "replace":
            raise RuleError(f"the rule for {self.image!r} needs a `command`, or `container_command: replace`")
        _one_of("network", self.network, _NETWORKS)
        if self.network == "pod" and not self.root:
            raise RuleError(f"the rule for {self.image!r} has `network: pod`, which only a container with a `root` has")
        _one_of("container_command", self.container_command, _ON_COMMAND)
        _one_of("container_args", self.container_args, _ON_ARGS)
        if self.stop_signal not in signal.Signals.__members__:
            raise RuleError(f"stop_signal {self.stop_signal!r} is no signal; SIGTERM is one")
        for text in self._texts():
            try:
                check_template(text)
            except TemplateError as error:
                raise RuleError(f"the rule for {self.image!r}: {error}") from error

    def _check_root(self) -> None:
        if not self.isolated:
            raise RuleError(
                f"the rule for {self.image!r} has a `root`, which nothing but isolation gives: drop `isolated`"
            )
        if self.files or self.translate:
            unneeded = "files" if self.files else "translate"
            raise RuleError(
                f"the rule for {self.image!r} has a `root`, so drop `{unneeded}`: paths are the container's"
            )
        for template in ("volumes", "volume", "kubeconfig"):
            if any(match[1] == template for text in self._texts() for match in _TEMPLATE.finditer(text)):
                raise RuleError(
                    f"the rule for {self.image!r} has a `root`, where there is no {{{template}}}: name mounts"
                )


def _one_of(name: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise RuleError(f"{name} is {value!r}; it may be {', '.join(allowed)}")


_LISTS = ("command", "pass_env", "host_paths", "mounts", "container_env", "files")
_SWITCHES = ("translate", "enforce_memory", "container_exec", "isolated")


def read_rules(document: Any) -> list[ProcessRule]:
    """Rules as a file has them: a list of mappings with the members of `ProcessRule`. Raises RuleError."""
    if not isinstance(document, list) or not all(isinstance(rule, dict) for rule in document):
        raise RuleError("a rules file is a list of mappings such as {image: 'web:*', command: [python3, serve.py]}")
    return [_read(rule) for rule in document]


def load(path: Path) -> list[ProcessRule]:
    """The rules of a YAML file; a `root` begins at its folder. Raises RuleError and OSError."""
    import yaml

    try:
        rules = read_rules(yaml.safe_load(path.read_text(encoding="utf-8")) or [])
    except yaml.YAMLError as error:
        raise RuleError(f"is not YAML: {error}") from error
    folder = path.absolute().parent
    return [replace(rule, root=str(folder / Path(rule.root).expanduser())) if rule.root else rule for rule in rules]


def _read(entry: dict[str, Any]) -> ProcessRule:
    known = {member.name for member in fields(ProcessRule)}
    if "image" not in entry or not set(entry) <= known:
        raise RuleError(f"the rule {entry} needs `image`, and may have {', '.join(sorted(known - {'image'}))}")
    made = dict(entry)
    for name in _LISTS:
        value = made.get(name, [])
        if not isinstance(value, list):
            raise RuleError(f"{name} of the rule for {entry['image']!r} is a list, one element per argument")
        made[name] = tuple(str(part) for part in value)
    made["env"] = {str(name): str(value) for name, value in (made.get("env") or {}).items()}
    for name in _SWITCHES:
        if not isinstance(made.get(name, True), bool):
            raise RuleError(f"{name} of the rule for {entry['image']!r} is true or false")
    for name in known - {*_LISTS, *_SWITCHES, "env"}:
        if name in made:
            made[name] = str(made[name])
    rule = ProcessRule(**made)
    rule.check()
    return rule


def find(rules: Sequence[ProcessRule], namespace: str, container: str, image: str) -> ProcessRule | None:
    return next((rule for rule in rules if rule.matches(namespace, container, image)), None)
