"""The operators that come along: what the command line can run, install and explain.

An operator is a package with a module `operator` that has an `OPERATOR`; a line in `SUMMARIES` makes it known. Only the
line is read to list them: the package is imported when the operator is wanted.
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
    "nacos": "Nacos servers and clusters on embedded storage, MySQL or PostgreSQL: made, healed, rolled, scaled",
    "wukong": "virtual machines on KubeVirt, CDI, Multus, NMState: one object is a machine with its disks and networks",
    "webapp": "a Deployment and a Service, kept as a WebApp wishes; the one to read first",
}
"""Name -> what it is about. `konverge.operators.NAME.operator.OPERATOR` is the rest."""


class UnknownOperator(LookupError):
    """There is no operator of that name; the text says which there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """What there is to know about an operator in order to run it."""

    name: str
    kinds: Sequence[type[CustomResource[Any, Any]]]
    """The kinds whose definitions have to be installed; versions of one kind follow each other."""
    controllers: Callable[[], list[Controller[Any]]]
    samples: tuple[str, ...] = ()
    """YAML files in the operator's package, to begin with."""
    environment: Callable[[], dict[str, str]] = dict
    """Settings of its own that the environment gives it here; where it is installed from here, its pod has the same."""

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
        """What the sample files say, in order."""
        from importlib.resources import files

        import yaml

        folder = files(f"konverge.operators.{self.name}")
        texts = [(folder / name).read_text(encoding="utf-8") for name in self.samples]
        return [document for text in texts for document in yaml.safe_load_all(text) if document]


def find(name: str) -> Operator:
    """The operator of that name. Raises UnknownOperator."""
    if name not in SUMMARIES:
        raise UnknownOperator(f"there is no operator {name!r}; there are: {', '.join(SUMMARIES)}")
    operator: Operator = import_module(f"konverge.operators.{name}.operator").OPERATOR
    return operator
