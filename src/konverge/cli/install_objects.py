"""Definitions and samples, put into a cluster: `konverge up` and `konverge run --install-crds` do it for you."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from konverge.cli.databases import in_samples
from konverge.cli.exit import CommandFailed
from konverge.sim.sample_databases import Database

if TYPE_CHECKING:
    from konverge.client import Client
    from konverge.operators.catalog import Operator

FIELD_MANAGER = "konverge"
ESTABLISHED_WITHIN = 30.0


async def install_definitions(client: Client, operators: Iterable[Operator]) -> None:
    """Apply the definitions of these operators, and wait until the server serves their kinds."""
    definitions = [definition for operator in operators for definition in operator.definitions()]
    for definition in definitions:
        await apply_definition(client, definition)
    for definition in definitions:
        await established(client, definition["metadata"]["name"])


async def apply_definition(client: Client, definition: dict[str, Any]) -> None:
    """Apply a definition. Where a process on this machine converts its objects now, or did when it was killed, the URL
    stays: together with the Service of the definition it would be refused."""
    from konverge.client import NotFound
    from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition

    try:
        live = await client.get(CustomResourceDefinition.resource, definition["metadata"]["name"])
    except NotFound:
        live = {"spec": {}}
    conversion = live["spec"].get("conversion") or {}
    if ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("url"):
        definition = {**definition, "spec": {**definition["spec"], "conversion": conversion}}
    await client.apply(definition, field_manager=FIELD_MANAGER, force=True)


async def established(client: Client, name: str) -> None:
    """Wait until the server serves the kind of a definition."""
    from konverge.client.definitions import until_served

    try:
        async with asyncio.timeout(ESTABLISHED_WITHIN):
            await until_served(client, name)
    except TimeoutError:
        raise CommandFailed(
            f"the definition {name} is not established after {ESTABLISHED_WITHIN:g} s: `kubectl describe crd {name}`"
        ) from None


async def missing_kinds(client: Client, operator: Operator) -> list[str]:
    """The kinds of an operator that the server does not serve in its version, as `webapps.apps.konverge.dev/v1`."""
    served = {served.resource for served in await client.mapper.all()}
    return [
        f"{kind.resource.group_resource}/{kind.resource.version}"
        for kind in operator.kinds
        if kind.resource not in served
    ]


async def create_samples(
    client: Client, operators: Iterable[Operator], databases: Sequence[Database] = ()
) -> list[dict[str, Any]]:
    """Make the samples that are not there yet, with these databases; those that a user changed stay as they are."""
    from konverge.client import AlreadyExists

    samples = in_samples((sample for operator in operators for sample in operator.sample_objects()), databases)
    for sample in samples:
        try:
            await client.create(sample)
        except AlreadyExists:
            continue
    return samples
