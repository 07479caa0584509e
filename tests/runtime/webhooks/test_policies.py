"""Rules in CEL as admission policies, on the embedded API server."""

from __future__ import annotations

from typing import Annotated

import pytest

from konverge.client import Client
from konverge.objects import CustomResource, Model, NoStatus, Rule, admission_policy, rule_policy
from konverge.objects.kinds.core_v1 import ConfigMap
from tests.objects.pools import Pool
from tests.runtime.webhooks import policies_contract as contract

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-76")]


async def test_a_policy_refuses_what_the_rules_of_the_class_refuse(client: Client) -> None:
    await contract.rules_of_a_class(client)


async def test_rules_over_a_built_in_kind(client: Client) -> None:
    await contract.rules_over_a_built_in_kind(client)


class ListSpec(Model):
    parts: list[Annotated[int, Rule("self >= oldSelf")]] = []


class Lists(CustomResource[ListSpec, NoStatus], group="rules.example.com", version="v1"):
    """Its rule is about entries that have no identity."""


def test_what_no_policy_can_say_is_an_error() -> None:
    with pytest.raises(TypeError, match="oldSelf is known for single fields only"):
        rule_policy(Lists)
    with pytest.raises(TypeError, match="needs a kind and a rule"):
        admission_policy("x", ConfigMap, rules=[])


def test_a_class_without_rules_has_no_policy() -> None:
    assert rule_policy(Pool) == []
