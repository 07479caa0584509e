"""Rules of the operator's roles that no run of a check used: one note, about the whole check."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from konverge.check import replay
from konverge.check.accounts import granted
from konverge.check.campaign import Campaign, Options, Outcome
from konverge.check.model import Alarm, Setup, Subject
from konverge.check.oracles import judge
from konverge.check.oracles.unused import Used, unused
from konverge.check.subjects import InThisProcess, from_file, from_target
from konverge.objects import crd_dict
from tests.check.campaign import keeper
from tests.check.campaign.test_campaign import STEPS, TARGET, planned
from tests.check.child.test_profile import write
from tests.check.oracles.histories import History, obj


def rule(group: str, resources: str, verbs: str) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}


def given(*rules: dict[str, Any], account: str = "home/me") -> Setup:
    """Roles of an account, and one of somebody else."""
    subject = {"kind": "ServiceAccount", "namespace": "home", "name": "me"}
    role = {"kind": "ClusterRole", "metadata": {"name": "mine"}, "rules": list(rules)}
    binding = {
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "mine"},
        "roleRef": {"kind": "ClusterRole", "name": "mine"},
        "subjects": [subject],
    }
    others = {"kind": "ClusterRole", "metadata": {"name": "viewer"}, "rules": [rule("batch", "jobs", "get")]}
    return Setup(objects=(role, binding, others), account=account)


def used(**state: Any) -> Used:
    run = History().rest(state).run
    run.reads = {"list /secrets": 3, "patch apps/deployments/status": 1, "list apps/deployments": 1}
    return Used([run])


def idle(notes: list[Alarm]) -> list[str]:
    return [text for alarm in notes for text in alarm.actual]


@pytest.mark.spec("K-40")
def test_what_no_run_used_is_one_note_for_each_role() -> None:
    rules = [
        rule("", "secrets", "get watch delete"),
        rule("apps", "deployments/status", "update"),
        rule("apps", "*", "*"),
        rule("batch", "*", "*"),
        rule("", "nodes", "*"),
    ]
    (note,) = unused(given(*rules), used())
    assert (note.oracle, note.severity, note.object) == ("permissions", "low", "ClusterRole mine")
    assert idle([note]) == ["delete secrets", "do everything with *.batch", "do everything with nodes"]
    assert unused(given(*rules[1:3]), used()) == []


@pytest.mark.spec("K-40")
def test_what_cannot_be_tried_or_is_granted_to_others_is_no_note() -> None:
    rules = (rule("route.openshift.io", "routes", "create"), rule("apps", "deployments/finalizers", "update"))
    assert unused(given(*rules), used()) == []
    granting = given(rule("", "pods", "get list"))
    assert idle(unused(granting, used())) == ["get, list pods"]
    made = obj("Role", rules=[rule("", "pods", "get")])
    assert unused(granting, used(**{"rbac.authorization.k8s.io/roles default/a": made})) == []


def _campaign(*rules: dict[str, Any], **options: Any) -> Outcome:
    """A check of a small operator whose roles are these."""
    api = "rbac.authorization.k8s.io"
    role = {"apiVersion": f"{api}/v1", "kind": "ClusterRole", "metadata": {"name": "mine"}, "rules": list(rules)}
    binding = {
        "apiVersion": f"{api}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "mine"},
        "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": "mine"},
        "subjects": [{"kind": "ServiceAccount", "name": "me", "namespace": "home"}],
    }
    objects, account = granted([role, binding], "home")
    setup = Setup(objects=(crd_dict(keeper.Kept), *objects), account=account, nodes=1)
    chosen = Options(shrink=False, unused_rules=True, **options)
    runner = InThisProcess(keeper.manager)
    return Campaign(Subject(target=TARGET), setup, STEPS, runner, chosen, planner=planned).check()


EVERYTHING = rule("*", "*", "*")


@pytest.mark.spec("K-40")
def test_a_check_reports_it_once_and_a_file_shows_it_again() -> None:
    outcome = _campaign(EVERYTHING, rule("", "nodes pods", "get"))
    [finding] = outcome.findings
    assert (finding.alarm.severity, finding.alarm.actual) == ("low", ["get nodes", "get pods"])
    assert "get nodes" in finding.sentence
    again = replay.replay_of(finding, outcome.evidence[0], "1.0")
    assert replay.again(again, InThisProcess(keeper.manager), judge)[1]
    assert _campaign(EVERYTHING).findings == []


@pytest.mark.spec("K-40")
def test_a_check_of_some_patterns_says_nothing_of_rules() -> None:
    assert _campaign(EVERYTHING, rule("", "nodes", "get"), only=("crash",)).findings == []


@pytest.mark.spec("K-40")
def test_roles_are_given_by_files_alone(tmp_path: Path) -> None:
    assert not from_target("webapp").roles_given
    path = write(tmp_path, 'command = ["./manager"]\ncrds = ["crds"]\nsample = "sample.yaml"\nrbac = ["rbac.yaml"]\n')
    assert from_file(path).roles_given
    path.write_text('command = ["./manager"]\ncrds = ["crds"]\nsample = "sample.yaml"\n')
    assert not from_file(path).roles_given
