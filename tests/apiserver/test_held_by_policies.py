"""How long expressions of admission hold up others: policies and match conditions, on large objects and on small ones.

An expression may cost a million units, which is half a second here, and a policy ten times as much.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.apiserver.api import CONFIG_MAPS, MERGE, Api
from tests.apiserver.held import Held, held

pytestmark = pytest.mark.spec("T-08")
GROUP = "/apis/admissionregistration.k8s.io/v1"
RULES = [{"apiGroups": [""], "apiVersions": ["*"], "operations": ["*"], "resources": ["configmaps"]}]
MANY = {f"k{number}": "v" for number in range(60_000)}
FEW = {f"k{number}": "v" for number in range(500)}
EACH = "object.data.all(k, object.data[k] == 'v' && !k.endsWith('x'))"
SQUARE = "object.data.all(k, object.data.exists(l, l == k))"
"""On FEW keys it costs more than the loop has time for, on a body of 5 KB."""


async def policy(api: Api, kind: str = "validating", *, actions: Any = ("Deny",), **spec: Any) -> None:
    spec = {"matchConstraints": {"resourceRules": RULES}, **spec}
    await api.create("p", f"{GROUP}/{kind}admissionpolicies", spec=spec)
    binding = {"policyName": "p", **({"validationActions": list(actions)} if kind == "validating" else {})}
    await api.create("p", f"{GROUP}/{kind}admissionpolicybindings", spec=binding)
    await api.create("first")  # what is loaded for the first write is not measured


def config_map(data: Any) -> Any:
    return {"metadata": {"name": "x"}, "data": data}


async def sent(api: Api, data: Any, status: int = 201) -> Held:
    probe = await held(api, "POST", CONFIG_MAPS, config_map(data))
    assert probe.response.status == status, probe.response.body[:300]
    probe.check()
    return probe


def guarded(expression: str) -> str:
    return f"!has(object.data) || {expression}"


@pytest.mark.parametrize(("expression", "data"), [(EACH, MANY), (SQUARE, FEW)], ids=["large", "small"])
async def test_a_policy_that_takes_long(api: Api, expression: str, data: Any) -> None:
    await policy(api, validations=[{"expression": guarded(expression)}])
    await sent(api, data)
    denied = await sent(api, {**data, "y": "w"}, status=422 if expression == EACH else 409)
    assert expression != EACH or b"failed expression" in denied.response.body
    small = await held(api, "PATCH", f"{CONFIG_MAPS}/x", {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE)
    assert small.response.status == 200
    small.check()


@pytest.mark.parametrize(("expression", "data"), [(EACH, MANY), (SQUARE, FEW)], ids=["large", "small"])
async def test_conditions_and_variables(api: Api, expression: str, data: Any) -> None:
    await policy(
        api,
        matchConditions=[{"name": "c", "expression": guarded(expression)}],
        variables=[{"name": "v", "expression": guarded(expression)}],
        validations=[{"expression": "variables.v && size(object.metadata.name) > 1"}],
    )
    denied = await sent(api, data, status=422)
    assert b"variables.v" in denied.response.body


async def test_it_warns_once_though_it_began_again_beside_the_loop(api: Api) -> None:
    checks = [{"expression": "!has(object.data)", "message": "no data"}, {"expression": guarded(SQUARE)}]
    await policy(api, actions=["Warn"], validations=checks)
    probe = await sent(api, FEW)
    warnings = probe.response.headers.get_all("warning")
    assert len(warnings) == 1
    assert "no data" in warnings[0]


async def test_the_cost_of_several_policies_is_one_cost(api: Api) -> None:
    """Each of these checks is short enough for the loop; all together are not."""
    part = "object.data.filter(k, k < 'k2').all(k, object.data.exists(l, l == k))"
    await policy(api, validations=[{"expression": guarded(part) + f" && {number} >= 0"} for number in range(40)])
    await sent(api, {f"k{number}": "v" for number in range(100)})


async def test_a_policy_out_of_its_limit_is_refused_as_before(api: Api) -> None:
    await policy(api, validations=[{"expression": guarded("object.data.all(k, object.data.all(l, l + 'x' != k))")}])
    denied = await sent(api, {f"k{number}": "v" for number in range(1_000)}, status=422)
    assert b"actual cost limit exceeded" in denied.response.body


async def test_policies_of_many_expressions_are_compiled_beside_the_loop(api: Api) -> None:
    checks = [{"expression": f"size(object.metadata.name) != {number + 100}"} for number in range(300)]
    await policy(api, validations=checks)
    label = {"metadata": {"labels": {"a": "b"}}}
    await api.patch(f"{GROUP}/validatingadmissionpolicies/p", label)  # it is compiled again
    await sent(api, {"a": "b"})


# --- mutations


def patches(*expressions: str) -> dict[str, Any]:
    made = [{"patchType": "JSONPatch", "jsonPatch": {"expression": text}} for text in expressions]
    return {"reinvocationPolicy": "Never", "mutations": made}


async def test_a_mutation_by_ten_thousand_operations(api: Api) -> None:
    patch = "JSONPatch{op: 'replace', path: '/data/' + k, value: 'w'}"
    await policy(
        api, "mutating", **patches(f"!has(object.data) ? [] : object.data.filter(k, size(k) < 6).map(k, {patch})")
    )
    probe = await sent(api, MANY)
    data = json.loads(probe.response.body)["data"]
    assert {key for key, value in data.items() if value == "w"} == {key for key in MANY if len(key) < 6}
    assert len(data) == len(MANY)


async def test_a_mutation_that_begins_again_is_made_once(api: Api) -> None:
    value = "{'n': has(object.metadata.annotations) ? object.metadata.annotations.n + 'i' : 'i'}"
    add = "[JSONPatch{op: 'add', path: '/metadata/annotations', value: " + value + "}]"
    long = "[JSONPatch{op: 'test', path: '/metadata/name', value: " + guarded(SQUARE) + " ? 'y' : 'x'}]"
    await policy(api, "mutating", **patches(add, long))
    probe = await sent(api, FEW)
    assert json.loads(probe.response.body)["metadata"]["annotations"] == {"n": "i"}


# --- webhooks


@pytest.mark.parametrize(("expression", "data"), [(EACH, MANY), (SQUARE, FEW)], ids=["large", "small"])
@pytest.mark.parametrize("kind", ["validating", "mutating"])
async def test_match_conditions_of_webhooks(api: Api, kind: str, expression: str, data: Any) -> None:
    hook = {
        "name": "a.b.c",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": "https://127.0.0.1:1/away"},
        "rules": RULES,
        "matchConditions": [{"name": "c", "expression": f"has(object.data) && !{expression}"}],
    }
    await api.create("h", f"{GROUP}/{kind}webhookconfigurations", webhooks=[hook])
    await api.create("first")
    await sent(api, data)
