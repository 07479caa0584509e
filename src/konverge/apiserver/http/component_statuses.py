"""componentstatuses: a resource of old that asks the parts of a control plane how they are.

Here the parts are one process, so whoever can ask gets a good answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from konverge.apiserver import status
from konverge.apiserver.http import respond
from konverge.wire.message import Response

if TYPE_CHECKING:
    from konverge.apiserver.request.call import Call

COMPONENTS = ("scheduler", "controller-manager", "etcd-0")


def _component(name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "conditions": [{"type": "Healthy", "status": "True", "message": "ok"}],
    }


async def status_of_components(call: Call) -> Response:
    name = call.info.name
    if not name:
        items = [_component(one) for one in COMPONENTS]
        return respond.answer(
            call, 200, {"kind": "ComponentStatusList", "apiVersion": "v1", "metadata": {}, "items": items}
        )
    if name not in COMPONENTS:
        raise status.not_found("", "componentstatuses", name)
    return respond.answer(call, 200, {"kind": "ComponentStatus", "apiVersion": "v1", **_component(name)})
