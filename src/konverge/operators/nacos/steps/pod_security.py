"""Which standard of Pod Security the pods of a Nacos meet, where its spec leaves that open.

A new Nacos runs as its image does, as root: no published image was made for another user. One that exists keeps what
its pods have, also when the field is taken back: another template would restart it, and servers have written data that
another user may not be allowed to change. The pods' template says what it was made for; the status remembers it when
the template is gone.
"""

from __future__ import annotations

from dataclasses import replace

from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.operators.nacos import names
from konverge.operators.nacos.spec import RESTRICTED
from konverge.operators.nacos.steps.pods import pods_of
from konverge.operators.nacos.steps.state import ReconcileState


async def choose_pod_security(state: ReconcileState) -> None:
    """Part of PreCheck."""
    given = state.desired.spec.pod_security
    restricted = given == RESTRICTED if given is not None else await _kept(state) == RESTRICTED
    state.desired = state.now = replace(state.desired, restricted=restricted)


async def _kept(state: ReconcileState) -> str:
    live = await state.reads.get(StatefulSet, state.desired.name)
    if live is not None:
        return standard_of(live)
    pods = pods_of(state)
    if pods:
        return pods[-1].metadata.annotations.get(names.POD_SECURITY, "")
    return state.status.applied.pod_security


def standard_of(live: StatefulSet) -> str:
    """The standard that its template was made for; empty: as operators made it that knew of none."""
    return live.spec.template.metadata.annotations.get(names.POD_SECURITY, "")
