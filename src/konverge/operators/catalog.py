"""What the command line, tests and other tools know of an operator, and the names of our own operators.

An operator of ours is a package with a module `operator` that has an `OPERATOR`; a line in `SUMMARIES` names it, and
one in pyproject.toml registers it as any other package's would be. `konverge.operators.loading` finds all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from konverge.objects import CustomResource
    from konverge.runtime import Controller, Manager
    from konverge.runtime.webhooks import Webhook

SUMMARIES: dict[str, str] = {
    "nacos": "Nacos servers and clusters on embedded storage, MySQL or PostgreSQL: created, healed, rolled, scaled",
    "wukong": "virtual machines on KubeVirt, CDI, Multus, NMState: one object is a machine with its disks and networks",
    "webapp": "a Deployment and a Service for each WebApp; the example to read first",
}
"""By name. `konverge.operators.NAME.operator.OPERATOR` has the rest."""


class UnknownOperator(LookupError):
    """There is no operator of that name; the text lists those that exist."""


def _no_policies(name: str) -> list[dict[str, Any]]:
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """Everything that is needed to run, install and test an operator.

    Most operators need none: a `Manager` or a list of controllers says enough. This is for one that brings samples,
    policies or settings of its own.

        operator = Operator(name="backup", kinds=[Backup], controllers=controllers, samples=("sample.yaml",))
    """

    name: str
    """As in `konverge run NAME`; its Deployment, service account and Lease are called after it."""
    kinds: Sequence[type[CustomResource[Any, Any]]]
    """The kinds whose definitions have to be installed; versions of one kind follow each other."""
    controllers: Callable[[], list[Controller[Any]]]
    about: str = ""
    """What it does, in a line."""
    samples: tuple[str, ...] = ()
    """YAML files in the operator's folder, for a first try."""
    policies: Callable[[str], list[dict[str, Any]]] = _no_policies
    """Its admission policies and their bindings, named after an installation: what the API server itself refuses."""
    environment: Callable[[], dict[str, str]] = dict
    """Its own settings in the environment of this process; an installation passes them on to the operator's pod."""
    webhooks: Callable[[], list[Webhook]] = list
    """Its admission and conversion webhooks."""
    manager: Manager | None = None
    """The manager that its author declared, if there is one: its name, settings and leader election count."""
    folder: Traversable | None = None
    """Where its samples are; where the module of `controllers` is by default."""
    command: tuple[str, ...] = ()
    """What starts it in its container; `konverge run NAME` by default."""
    image: str = ""
    """Its container image, where an installation names none; that of konverge, if it is empty."""
    version: str = ""
    """The version of its package; that of konverge, if it is empty."""
    console_pages: tuple[Any, ...] = ()
    """Its pages in the console, each a `konverge.console.Page`."""

    @property
    def summary(self) -> str:
        return self.about or SUMMARIES.get(self.name, f"the operator {self.name}")

    @property
    def identity(self) -> str:
        """Its name as the source of events, as the holder of a Lease, and of what is installed for it."""
        return joint_name([self])

    @property
    def start(self) -> tuple[str, ...]:
        return self.command or ("konverge", "run", self.name)

    @property
    def reference(self) -> tuple[str, ...]:
        """How its program is given this operator: by the name, file or module, or not at all where it is its own."""
        return self.start[2:]

    @property
    def product(self) -> str:
        """What the objects of an installation are part of."""
        return self.name if self.image else "konverge"

    def definitions(self) -> list[dict[str, Any]]:
        """The CustomResourceDefinitions to install, as plain data."""
        from konverge.objects import crd_dict
        from konverge.objects.custom.schema import write_schemas

        write_schemas(self.kinds)
        return [crd_dict(*classes) for classes in self._versions()]

    @property
    def stored_kinds(self) -> list[type[CustomResource[Any, Any]]]:
        """Of each kind, the version that is stored."""
        from konverge.objects.custom.versions import stored_version

        return [stored_version(tuple(classes))[1] for classes in self._versions()]

    def _versions(self) -> list[list[type[CustomResource[Any, Any]]]]:
        """The classes of each kind."""
        versions: dict[str, list[type[CustomResource[Any, Any]]]] = {}
        for kind in self.kinds:
            versions.setdefault(kind.resource.group_resource, []).append(kind)
        return list(versions.values())

    def sample_objects(self) -> list[dict[str, Any]]:
        """The objects of the sample files, in order, as `kubectl apply` reads them."""
        import yaml

        from konverge.go_yaml import Loader

        folder = self.folder or _folder_of(self.controllers) if self.samples else None
        texts = [(folder / name).read_text(encoding="utf-8") for name in self.samples if folder is not None]
        return [document for text in texts for document in yaml.load_all(text, Loader) if document]


def _folder_of(function: Callable[..., Any]) -> Traversable:
    from importlib.resources import files

    module = import_module(function.__module__)
    return files(module.__name__ if hasattr(module, "__path__") else module.__package__ or module.__name__)


def joint_name(operators: Sequence[Operator]) -> str:
    """One name for several operators in one process: that of their Lease, Deployment and service account."""
    return "-".join(sorted(operator.name.removesuffix("-operator") for operator in operators)) + "-operator"


def command_line(verb: str, operators: Sequence[Operator]) -> str:
    """What a user types to do something with these operators: `konverge crd webapp`, or `backup crd`."""
    by_program: dict[str, list[str]] = {}
    for operator in operators:
        by_program.setdefault(operator.start[0], []).extend(operator.reference)
    return " && ".join(" ".join((program, verb, *references)) for program, references in by_program.items())


def find(name: str) -> Operator:
    """Our operator of that name. Raises UnknownOperator."""
    if name not in SUMMARIES:
        raise UnknownOperator(f"there is no operator {name!r}; known operators: {', '.join(SUMMARIES)}")
    operator: Operator = import_module(f"konverge.operators.{name}.operator").OPERATOR
    return operator
