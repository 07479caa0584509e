"""What the comparison says is what the API server does: an apply is skipped if and only if it would change nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.apiserver import ApiServer
from konverge.client import Client, Static
from konverge.objects.codec import to_dict
from konverge.runtime.containment import first_difference, our_fields
from tests.runtime.objects import SPACE
from tests.sizes import examples

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-25")]


def subsets(*values: Any) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.sampled_from(values), unique=True, max_size=len(values))


def port(number: int, protocol: str) -> dict[str, Any]:
    return {"containerPort": number, **({"protocol": protocol} if protocol else {})}


ports = st.lists(
    st.builds(port, st.sampled_from([80, 81]), st.sampled_from(["", "TCP", "SCTP"])),
    max_size=2,
    unique_by=lambda entry: (entry["containerPort"], entry.get("protocol", "TCP")),
)
env = st.dictionaries(st.sampled_from("AB"), st.sampled_from("12"), max_size=2)
limits = st.dictionaries(
    st.sampled_from(["cpu", "example.com/disk"]), st.sampled_from(["1", "1000m", "2"]), min_size=1, max_size=2
)


@st.composite
def partial(draw: st.DrawFn, others: bool = False) -> dict[str, Any]:
    """A Deployment as one manager applies it: some fields of each kind of list and map, and no others."""
    container: dict[str, Any] = {"name": "web"}
    spec: dict[str, Any] = {"template": {"spec": {"containers": [container]}}}
    metadata: dict[str, Any] = {"name": "web", "namespace": SPACE}
    if not others:
        container["image"] = "web:1"
        spec["selector"] = {"matchLabels": {"app": "web"}}
        spec["template"]["metadata"] = {"labels": {"app": "web"}}
    if draw(st.booleans()):
        spec["replicas"] = draw(st.sampled_from([1, 2]))
    if names := draw(subsets("a.dev/x", "a.dev/y")):
        metadata["finalizers"] = names
    if names := draw(subsets("a", "b")):
        metadata["labels"] = {name: draw(st.sampled_from("12")) for name in names}
    if variables := draw(env):
        container["env"] = [{"name": name, "value": value} for name, value in variables.items()]
    if draw(st.booleans()):
        container["args"] = draw(st.lists(st.sampled_from("xy"), min_size=1, max_size=2))
    if entries := draw(ports):
        container["ports"] = entries
    if draw(st.booleans()):
        amounts = draw(limits)
        container["resources"] = {"limits": amounts, "requests": amounts}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def state(live: dict[str, Any]) -> tuple[Any, ...]:
    """Everything but the version and the other managers' entries, which an apply may tidy up."""
    metadata = {
        name: value for name, value in live["metadata"].items() if name not in ("resourceVersion", "managedFields")
    }
    return {**live, "metadata": metadata}, our_fields(live, "me")  # type: ignore[return-value]


@settings(max_examples=examples(2))
@given(partial(), st.none() | partial(others=True), partial(), st.booleans())
async def test_an_apply_is_skipped_if_and_only_if_it_would_change_nothing(
    first: dict[str, Any], other: dict[str, Any] | None, then: dict[str, Any], same: bool
) -> None:
    desired = first if same else then
    async with ApiServer() as server, Client(server.transport, credentials=Static.bearer(server.token)) as client:
        live = await client.apply(first, field_manager="me")
        if other is not None:
            live = await client.apply(other, field_manager="another", force=True)
        difference = first_difference(desired, to_dict(live), "me")
        after = await client.apply(desired, field_manager="me", force=True)
    changed = state(to_dict(after)) != state(to_dict(live))
    assert bool(difference) == changed, difference
