"""What is there before the operator starts: definitions, roles, namespaces, and the token of its account."""

from __future__ import annotations

from typing import TYPE_CHECKING

from konverge.check.accounts import token_of
from konverge.check.model import Setup
from konverge.check.operator import CannotStart
from konverge.client import Client, ClientError

if TYPE_CHECKING:
    from konverge.sim.applications import Simulation


async def prepare(client: Client, setup: Setup) -> str:
    """Create all of it; the result is the token of the operator's account, if it has one. Raises CannotStart."""
    present = {obj["metadata"]["name"] for obj in setup.objects if obj["kind"] == "Namespace"}
    if setup.namespace not in {"default", *present}:
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": setup.namespace}})
    for obj in setup.objects:
        try:
            await client.create(obj)
        except ClientError as error:
            what = f"{obj.get('kind')} {obj.get('metadata', {}).get('name')}"
            raise CannotStart(f"the API server refused {what} of the setup: {error}") from error
    return await token_of(client, setup.account)


def simulation_of(setup: Setup) -> Simulation | None:
    """The stand-ins that the setup asks for. Raises CannotStart."""
    if not setup.simulate:
        return None
    from konverge.sim.applications import SimulationError, parse_simulation

    try:
        return parse_simulation(setup.simulate)
    except SimulationError as error:
        raise CannotStart(str(error)) from error
