"""The operator's own settings: how often, how long, what it may do to nodes. This module alone reads the environment.

`KONVERGE_WUKONG_NODE_INTERFACES` lists the interfaces of nodes (`ens224,ens256`) that may go into a bridge. A user who
can write a Wukong could otherwise rewire the nodes, so without it no policy is ever made, and no permission for that
asked.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

NODE_INTERFACES = "KONVERGE_WUKONG_NODE_INTERFACES"


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds, where nothing else is said."""

    wait: float = 10.0
    """Until the next look at something that is on its way; watches report sooner. The document's number."""
    error: float = 30.0
    """Until the next look at something that went wrong. The document's number."""
    limit: float = 50.0
    """For one reconcile: the context of the document, which is cancelled then. Less than the runtime's own limit."""
    unschedulable_grace: float = 60.0
    """How long no node may be found before that is worth telling: while a claim is being made, it is usual."""
    import_restarts: int = 3
    """Restarts of an importer from which on the import counts as failing. It never gives up by itself."""
    node_interfaces: frozenset[str] = frozenset()
    """Interfaces of nodes that may go into a bridge; none: NMState is left alone."""

    @property
    def node_networks(self) -> bool:
        return bool(self.node_interfaces)


def from_environment(environment: Mapping[str, str] | None = None) -> Options:
    """The settings of this process."""
    given = (os.environ if environment is None else environment).get(NODE_INTERFACES, "")
    return Options(node_interfaces=frozenset(interface.strip() for interface in given.split(",") if interface.strip()))


def to_environment() -> dict[str, str]:
    """The same, for a process that is to have the settings of this one."""
    allowed = from_environment().node_interfaces
    return {NODE_INTERFACES: ",".join(sorted(allowed))} if allowed else {}
