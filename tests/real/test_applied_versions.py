"""Server-side apply across versions of a kind, on the real server and on ours: the same answers."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.apiserver.api import APPLY, MERGE
from tests.apiserver.crd import applied_versions as versions
from tests.apiserver.crd.recordings import DEFINITIONS, Row
from tests.real.converted_kinds import Hook, define, running_hook
from tests.real.sides import NAMESPACE, Side, thorough

KINDS = count()


@pytest.fixture(scope="module")
def hook() -> Iterator[Hook]:
    with running_hook() as hook:
        yield hook


def drop(side: Side, definition: Row, version: str) -> None:
    path = f"{DEFINITIONS}/{definition['metadata']['name']}"
    live = side.send("GET", path)[1]
    kept = [entry for entry in live["spec"]["versions"] if entry["name"] != version]
    code, answer = side.send("PATCH", path, {"spec": {"versions": kept}}, MERGE)  # its controllers write it, too
    assert code == 200, answer
    group = definition["spec"]["group"]
    path = f"/apis/{group}/v1/namespaces/{NAMESPACE}/boxes/a"
    probe = {"apiVersion": f"{group}/v1", "kind": "Box", "metadata": {"name": "a"}}
    # The versions that are left learn of it a moment later; then what was owned in it cannot be converted any more.
    while side.send("PATCH", path, probe, APPLY, fieldManager="probe", dryRun="All")[0] != 500:
        time.sleep(0.05)


def performed(side: Side, definition: Row, steps: list[versions.Step], webhook: versions.Webhook) -> list[Row]:
    group, answers = definition["spec"]["group"], []
    for step in steps:
        if step[0] == "webhook":
            webhook.fails = step[1] == "fails"
        elif step[0] == "drop":
            drop(side, definition, step[1])
        else:
            exchange = versions.exchange(step, group, NAMESPACE, lambda path: side.send("GET", path)[1])
            method, path, body, media, query = exchange
            code, answer = side.send(method, path, body, media, **query)
            answers.append(json.loads(json.dumps(versions.seen(code, answer)).replace(group, f"a.{versions.GROUP}")))
    return answers


@pytest.mark.spec("S-29", "S-07")
@pytest.mark.parametrize("name", versions.SEQUENCES)
@pytest.mark.parametrize("form", versions.FORMS)
def test_versions_are_applied_alike(sides: tuple[Side, Side], hook: Hook, form: str, name: str) -> None:
    storage, by_webhook = versions.FORMS[form]
    definition = versions.definition(f"k{next(KINDS)}", storage, hook.place if by_webhook else None)
    answers = []
    for side in sides:
        define(side, definition)
        answers.append(performed(side, definition, versions.SEQUENCES[name], hook.webhook))
    assert answers[1] == answers[0]


small = st.sampled_from(["1", "2"])


def _specs(version: str) -> st.SearchStrategy[Row]:
    common = {
        "color": small,
        "depth": st.sampled_from(["of v1", "of v2", "2"]),
        "args": st.lists(small, max_size=2),
        "env": st.dictionaries(st.sampled_from(["a", "b"]), small, max_size=2),
        "tags": st.lists(small, max_size=2, unique=True),
    }
    return st.fixed_dictionaries(
        {}, optional=common | {versions.RENAMED[version]: small, versions.ALONE[version]: small}
    )


def _steps(version: str) -> st.SearchStrategy[versions.Step]:
    verbs = st.sampled_from(["apply", "apply", "force", "merge", "put", "create"])
    return st.tuples(
        verbs, st.just(version), st.sampled_from(["one", "two"]), _specs(version).map(lambda spec: {"spec": spec})
    )


@pytest.fixture(scope="module")
def boxes(sides: tuple[Side, Side], hook: Hook) -> dict[str, Row]:
    """A kind for each stored version."""
    definitions = {}
    for storage in ("v1", "v2"):
        definitions[storage] = versions.definition(f"random-{storage}", storage, hook.place)
        for side in sides:
            define(side, definitions[storage])
    return definitions


@pytest.mark.spec("S-29", "S-07")
@thorough(80)
@given(
    storage=st.sampled_from(["v1", "v2"]),
    steps=st.lists(st.sampled_from(["v1", "v2"]).flatmap(_steps), min_size=2, max_size=6),
)
def test_versions_are_written_alike_in_any_order(
    sides: tuple[Side, Side], boxes: dict[str, Row], hook: Hook, storage: str, steps: list[versions.Step]
) -> None:
    definition = boxes[storage]
    first = ("apply", "v1", "one", {"spec": {"size": "1"}})
    answers = []
    for side in sides:
        answers.append(performed(side, definition, [first, *steps], hook.webhook))
        side.send("DELETE", f"/apis/{definition['spec']['group']}/v1/namespaces/{NAMESPACE}/boxes/a")
    assert answers[1] == answers[0]
