"""A recording as a pytest file for the plugin of `konverge.testing`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pprint import pformat
from typing import Any

from konverge.console.recording import Recording, Step, Touched

_PATCHES = {
    "application/merge-patch+json": "MergePatch",
    "application/strategic-merge-patch+json": "StrategicPatch",
    "application/json-patch+json": "JsonPatch",
    "application/apply-patch+yaml": "ApplyPatch",
}
_HEAD = '''"""Recorded in the console of `konverge up`: the same steps at the same pace, on virtual time.

    pip install "konverge[test]" && pytest {file}

The seed in the mark below is that of the simulation. `--konverge-seed 7` gives the test other chances (elections,
back-off, the order of what happens at once); `seeds=range(20)` in the mark tries many.
"""

import asyncio

from konverge.client import {patches}
from konverge.explain import Gatherer, Ref
from konverge.operators.catalog import find
from konverge.sim.outside import with_simulators
from konverge.testing import settled
from konverge.testing.operators import install_definitions


async def health(client, *ref):
    return (await Gatherer(client).why(Ref(*ref))).health.value


'''
FILE = "test_recorded.py"


def recorded_test(
    recording: Recording, operators: Sequence[str], healths: dict[Touched, str], *, nodes: int, seed: int
) -> str:
    """The text of the file; `healths` are what the test expects at its end, `seed` that of the simulation."""
    body = [f"await client.create({_value(obj, 2)})" for obj in recording.given]
    body += ["await settled(cluster)"]
    before = 0.0
    for step in recording.steps:
        pause = round(step.after - before, 1)
        body += [f"await asyncio.sleep({pause:g})"] if pause > 0 else []
        before = step.after
        body += _lines(step)
    body += ["await settled(cluster, quiet=60)"]
    body += [line for touched, state in healths.items() for line in _expected(touched, state)]
    made = f"[{', '.join(f'find({name!r})' for name in operators)}]"
    head = _HEAD.format(file=FILE, patches=", ".join(sorted({*_PATCHES.values(), "NotFound"})))
    marks = f"@pytest.mark.konverge(nodes={nodes}, seed={seed})\n"
    indented = "\n".join(f"        {line}" for line in _split(body))
    return (
        head.replace("import asyncio\n", "import asyncio\n\nimport pytest\n")
        + marks
        + "async def test_recorded(cluster, client, operator, konverge_seed):\n"
        + f"    operators = {made}\n"
        + "    await install_definitions(client, [kind for each in operators for kind in each.kinds])\n"
        + "    simulators = with_simulators(cluster, operators, seed=konverge_seed)\n"
        + "    async with simulators as controllers, operator(controllers):\n"
        + f"{indented}\n"
    )


def _split(statements: Iterable[str]) -> Iterable[str]:
    return (line for statement in statements for line in statement.split("\n"))


def _lines(step: Step) -> list[str]:
    if step.fault:
        return [_fault(step.fault, step.values)]
    place = step.place
    name, space = f"{place.kind_name!r}, {place.name!r}", f"{place.namespace!r}"
    part = f", subresource={place.subresource!r}" if place.subresource else ""
    if step.method == "POST":
        return [f"await client.create({_value(step.body, 2)}, {space}, resource={place.kind_name!r})"]
    if step.method == "DELETE":
        policy = (step.body or {}).get("propagationPolicy") if isinstance(step.body, dict) else None
        return [f"await client.delete({name}, {space}{f', propagation={policy!r}' if policy else ''})"]
    if step.method == "PUT":
        return [
            f"desired = {_value(step.body, 2)}",
            "desired.get('metadata', {}).pop('resourceVersion', None)",
            "desired.get('metadata', {}).pop('uid', None)",
            f"await client.update(desired, {space}, resource={place.kind_name!r}{part})",
        ]
    patch = _PATCHES.get(step.content_type, "MergePatch")
    manager = ", field_manager='recorded', force=True" if patch == "ApplyPatch" else ""
    return [f"await client.patch({name}, {patch}({_value(step.body, 2)}), {space}{part}{manager})"]


def _fault(name: str, values: dict[str, Any]) -> str:
    match name:
        case "lose-node":
            return f"cluster.lose_node({values['node']!r})"
        case "recover-node":
            return f"await cluster.recover_node({values['node']!r})"
        case "cut-api":
            return f"await cluster.cut_api({values['seconds']!r})"
        case "delay-watch":
            return f"cluster.delay_watches({values['seconds']!r})"
        case "forget-history":
            return "cluster.server.store.compact(cluster.server.store.revision)"
        case "jump-clock":
            return f"cluster.jump_clock({values['seconds']!r})"
    selector = ",".join(f"{key}={value}" for key, value in sorted(values.get("labels", {}).items()))
    space = values["namespace"]
    if not selector:
        return f"cluster.crash_pod({values['pod']!r}, {space!r})"
    return (
        f"pods = await client.list('pods', {space!r}, label_selector={selector!r})\n"
        f"cluster.crash_pod(pods.items[0]['metadata']['name'], {space!r})"
    )


def _expected(touched: Touched, state: str) -> list[str]:
    ref = ", ".join(repr(part) for part in touched.ref)
    if state != "gone":
        return [f"assert await health(client, {ref}) == {state!r}"]
    kind = f"{touched.resource.plural}.{touched.resource.version}.{touched.resource.group}"
    return [
        "with pytest.raises(NotFound):",
        f"    await client.get({kind!r}, {touched.name!r}, {touched.namespace!r})",
    ]


def _value(value: Any, level: int) -> str:
    """A value as Python writes it, on as many lines as it takes."""
    return pformat(value, width=100 - 4 * level, sort_dicts=False)
