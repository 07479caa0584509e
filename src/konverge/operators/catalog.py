"""The built-in operators, which the command line can run, install and explain.

An operator is a package with a module `operator` that has an `OPERATOR`; a line in `SUMMARIES` registers it. A list of
operators reads these lines only: the package is imported when the operator is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from konverge.objects import CustomResource
    from konverge.runtime import Controller

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
    """Everything that is needed to run an operator."""

    name: str
    kinds: Sequence[type[CustomResource[Any, Any]]]
    """The kinds whose definitions have to be installed; versions of one kind follow each other."""
    controllers: Callable[[], list[Controller[Any]]]
    samples: tuple[str, ...] = ()
    """YAML files in the operator's package, for a first try."""
    policies: Callable[[str], list[dict[str, Any]]] = _no_policies
    """Its admission policies and their bindings, named after an installation: what the API server itself refuses."""
    environment: Callable[[], dict[str, str]] = dict
    """Its own settings in the environment of this process; an installation passes them on to the operator's pod."""

    @property
    def summary(self) -> str:
        return SUMMARIES[self.name]

    @property
    def identity(self) -> str:
        """Its name as a field manager, as the source of events and as the holder of a Lease."""
        return f"{self.name}-operator"

    def definitions(self) -> list[dict[str, Any]]:
        """The CustomResourceDefinitions to install, as plain data."""
        from konverge.objects import crd_dict

        versions: dict[str, list[type[CustomResource[Any, Any]]]] = {}
        for kind in self.kinds:
            versions.setdefault(kind.resource.group_resource, []).append(kind)
        return [crd_dict(*classes) for classes in versions.values()]

    def sample_objects(self) -> list[dict[str, Any]]:
        """The objects of the sample files, in order."""
        from importlib.resources import files

        import yaml

        folder = files(f"konverge.operators.{self.name}")
        texts = [(folder / name).read_text(encoding="utf-8") for name in self.samples]
        return [document for text in texts for document in yaml.safe_load_all(text) if document]


def find(name: str) -> Operator:
    """The operator of that name. Raises UnknownOperator."""
    if name not in SUMMARIES:
        raise UnknownOperator(f"there is no operator {name!r}; known operators: {', '.join(SUMMARIES)}")
    operator: Operator = import_module(f"konverge.operators.{name}.operator").OPERATOR
    return operator
