"""The chart of an operator with webhooks, rendered by the real helm, says what the manifests say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge.cli.installation import Installation
from konverge.cli.main import main
from konverge.operators.loading import load
from tests.real.embedded import Tool

pytestmark = pytest.mark.spec("R-70")

CODE = """
from typing import Any
from konverge import Context, Controller, Manager, Review, mutating, validating
from tests.runtime.webhooks.pools import Pool

@validating(Pool)
def check(review: Review[Pool]) -> None: ...

@mutating(Pool)
def default(review: Review[Pool]) -> None: ...

async def fill(ctx: Context[Pool]) -> None: ...

manager = Manager(name="pools").add(Controller(Pool, fill)).add_webhook(check).add_webhook(default)
"""
COMPARED = ("Service", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "Issuer", "Certificate")


@pytest.mark.parametrize("cert_manager", [False, True])
def test_the_chart_renders_what_the_manifests_have(
    helm_program: Path, kubectl: Path, tmp_path: Path, cert_manager: bool
) -> None:
    code = tmp_path / "pools.py"
    code.write_text(CODE)
    assert main(["chart", str(code), "--dir", str(tmp_path)]) == 0
    helm = Tool(helm_program, tmp_path / "none", tmp_path)
    folder = tmp_path / "pools-operator"
    assert "0 chart(s) failed" in helm("lint", "--strict", str(folder))
    options = ["--namespace", "tools", "--set", f"webhooks.certManager={str(cert_manager).lower()}"]
    rendered = [obj for obj in yaml.safe_load_all(helm("template", folder.name, str(folder), *options)) if obj]
    plan = Installation(operators=[load(str(code))], namespace="tools", cert_manager=cert_manager).everything()
    assert _compared(rendered) == _compared(plan)
    ours, theirs = (_pod(objs) for objs in (plan, rendered))
    for part in ("args", "ports", "volumeMounts"):
        assert theirs["containers"][0].get(part) == ours["containers"][0].get(part)
    for part in ("volumes", "securityContext"):
        assert theirs.get(part) == ours.get(part)
    assert _named_rules(rendered) == _named_rules(plan)


def _compared(objs: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        f"{obj['kind']} {obj['metadata']['name']}": (
            obj.get("spec"),
            obj.get("webhooks"),
            obj["metadata"].get("annotations"),
        )
        for obj in objs
        if obj["kind"] in COMPARED
    }


def _pod(objs: list[dict[str, Any]]) -> dict[str, Any]:
    (pod,) = (obj["spec"]["template"]["spec"] for obj in objs if obj["kind"] == "Deployment")
    return dict(pod)


def _named_rules(objs: list[dict[str, Any]]) -> set[tuple[str, ...]]:
    """(resource, name, verb) of what is granted on certain objects only, and on Secrets."""
    return {
        (resource, name, verb)
        for obj in objs
        for rule in obj.get("rules", ())
        for resource in rule["resources"]
        if "resourceNames" in rule or resource == "secrets"
        for name in rule.get("resourceNames", [""])
        for verb in rule["verbs"]
    }
