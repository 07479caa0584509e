"""The account of an operator in Python has what its declarations ask for, webhooks included."""

from __future__ import annotations

import pytest

from konverge.check.accounts import declared
from konverge.check.model import Plan, Task
from konverge.check.subjects import InThisProcess, declaration_of, from_target
from konverge.check.workload import basic
from konverge.operators.catalog import find
from konverge.runtime.webhooks import Webhook
from konverge.runtime.webhooks.admission import MutatingHook, ValidatingHook
from tests.runtime.webhooks.contract import hooks

pytestmark = pytest.mark.spec("K-40")


def rules(*webhooks: Webhook) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """Resource, verbs and names of what an account without controllers may do."""
    objects, account = declared([], "operators", "me", webhooks)
    assert account == "operators/me"
    return [
        (resource, tuple(sorted(rule["verbs"])), tuple(rule.get("resourceNames", ())))
        for obj in objects
        if obj["kind"] == "ClusterRole"
        for rule in obj["rules"]
        for resource in rule["resources"]
        if "events" not in resource
    ]


def test_no_webhooks_need_nothing() -> None:
    assert rules() == []


def test_a_conversion_needs_its_definition_and_no_other() -> None:
    expected = [("customresourcedefinitions", ("get", "patch"), ("nacos.nacos.io",))]
    assert rules(*find("nacos").webhooks()) == expected


@pytest.mark.parametrize(
    ("kind", "resource"),
    [(ValidatingHook, "validatingwebhookconfigurations"), (MutatingHook, "mutatingwebhookconfigurations")],
)
def test_an_admission_webhook_needs_its_configuration(kind: type[Webhook], resource: str) -> None:
    chosen = [hook for hook in hooks([]) if isinstance(hook, kind)]
    assert chosen
    assert rules(*chosen) == [(resource, ("create", "delete", "get", "patch"), ())]


def test_an_operator_with_a_conversion_works_with_its_own_account() -> None:
    """It ended at once: it was not allowed to read the definition that it converts."""
    checked = from_target("nacos")
    single = [obj for obj in checked.samples if obj["metadata"]["name"] == "nacos-single"]
    assert checked.operator is not None
    task = Task(subject=checked.subject, setup=checked.setup, steps=basic(single)[:1], plan=Plan("reference"))
    run = InThisProcess(declaration_of(checked.operator)).run(task)
    assert (run.problem, run.exits) == ("", [])
    assert run.checkpoints[0].state["nacos.io/nacos default/nacos-single"]["status"]["phase"] == "Running"
    assert [exchange.error for exchange in run.exchanges if exchange.status == 403] == []
