"""Templates in a rule's texts: `{pod_ip}`, `{port:http}`, `{mount:/etc/app}`; braces themselves are `{{` and `}}`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

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


def check(text: str) -> None:
    """Raises TemplateError."""
    if text != ARGS:
        expand(text, dict.fromkeys(PLAIN, ""), {name: lambda argument: "" for name in WITH_ARGUMENT})


def expand(text: str, plain: Mapping[str, str], with_argument: Mapping[str, Callable[[str], str]]) -> str:
    """
    >>> expand("{pod_ip}:{port:http} {{}}", {"pod_ip": "127.1.0.1"}, {"port": lambda name: "80"})
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
        known = [
            *(f"{{{known_name}}}" for known_name in PLAIN),
            *(f"{{{known_name}:…}}" for known_name in WITH_ARGUMENT),
        ]
        raise TemplateError(
            f"{whole!r} in {text!r} is no template; write {{{{ for a brace; there are {' '.join(known)}"
        )

    return _TEMPLATE.sub(value, text)
