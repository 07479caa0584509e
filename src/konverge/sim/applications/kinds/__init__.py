"""The stand-ins that come with Konverge, by the `kind` of a server in a simulate file."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from konverge.sim.applications.application import Application

if TYPE_CHECKING:
    from konverge.sim.applications.simulation import ServerRule

_HERE = "konverge.sim.applications.kinds"
KINDS = {
    "http": f"{_HERE}.http:HttpTable",
    "redis": f"{_HERE}.redis:Redis",
    "zookeeper": f"{_HERE}.zookeeper:ZooKeeper",
    "cassandra": f"{_HERE}.cassandra:CassandraManagement",
    "mysql": f"{_HERE}.mysql:MySql",
    "mongodb": f"{_HERE}.mongodb:MongoDb",
}


def application_class(rule: ServerRule) -> type[Application]:
    """The class that a rule names. Raises LookupError, ImportError, AttributeError or TypeError."""
    if rule.kind and rule.kind not in KINDS:
        raise LookupError(
            f"there is no kind {rule.kind!r}; there are: {', '.join(KINDS)}; or write `python: module:Class`"
        )
    module, _, name = (rule.python or KINDS[rule.kind]).partition(":")
    if not module or not name:
        raise LookupError(f"`python: {rule.python}` is not in the form module:Class")
    made = getattr(import_module(module), name)
    if not (isinstance(made, type) and issubclass(made, Application)):
        raise TypeError(f"{module}:{name} is no subclass of konverge.sim.applications.Application")
    return made
