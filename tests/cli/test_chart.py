"""`konverge chart`: what does not need Helm. Rendering, linting and installing are in tests/real/test_charts.py."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge.cli.chart_leftovers import leftovers
from konverge.cli.charts import chart
from konverge.cli.documents import write_folder
from konverge.cli.installation import Installation
from konverge.cli.main import main
from konverge.cli.management import caller_rules
from konverge.objects.kinds.core_v1 import ConfigMap, Pod, Secret
from konverge.operators.catalog import SUMMARIES, find
from konverge.operators.loading.wrapping import as_operator
from konverge.runtime import Controller, Manager, Use
from konverge.runtime.rbac import rules_for
from konverge.runtime.sharding import Sharding


def sorted_rules(rules: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(rule, sort_keys=True) for rule in rules)


@pytest.mark.parametrize("name", SUMMARIES)
def test_its_roles_are_those_of_the_manifests(name: str) -> None:
    made = chart(find(name), "1.2.3")
    rules = {place: yaml.safe_load(made[f"rules/{place}.yaml"]) for place in ("cluster", "namespaced", "lease")}
    plan = Installation(operators=[find(name)], namespace="tools")
    roles = {obj["kind"]: obj["rules"] for obj in plan.access() if "rules" in obj}
    webhooks = plan.webhooks.permissions()  # granted by a template of their own
    cluster, lease = (
        rules_for(permission for permission in webhooks if bool(permission.namespace) is lease)
        for lease in (False, True)
    )
    assert sorted_rules(rules["cluster"] + rules["namespaced"] + cluster) == sorted_rules(roles["ClusterRole"])
    assert sorted_rules(rules["lease"] + lease) == sorted_rules(roles["Role"])


async def nothing(ctx: Any) -> None: ...


def test_rights_in_namespaces_that_the_code_names_are_granted_there() -> None:
    manager = Manager(name="greeter").add(
        Controller(
            ConfigMap,
            nothing,
            uses=[Use(Secret, "get", namespaces=("vault",)), Use(Pod, "list", namespaces=("vault", "pods"))],
        )
    )
    operator = as_operator(manager)
    made = chart(operator, "1.2.3")
    plan = Installation(operators=[operator], namespace="tools")
    roles = {obj["metadata"]["namespace"]: obj["rules"] for obj in plan.access() if obj["kind"] == "Role"}
    rules = yaml.safe_load(made["rules/declared.yaml"])
    assert rules == {space: roles[space] for space in ("vault", "pods")}
    assert rules["vault"] == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]},
    ]
    assert '.Files.Get "rules/declared.yaml"' in made["templates/roles.yaml"]
    assert yaml.safe_load(chart(find("webapp"), "1.2.3")["rules/declared.yaml"]) == {}


@pytest.mark.parametrize("name", SUMMARIES)
def test_it_has_the_definitions_and_its_version(name: str) -> None:
    made = chart(find(name), "1.2.3")
    plan = Installation(operators=[find(name)], namespace="default")
    folders = ("crds/", "definitions/")  # of those that a template completes
    definitions = [yaml.safe_load(text) for path, text in made.items() if path.startswith(folders)]
    assert definitions == [plan.webhooks.in_definition(definition) for definition in find(name).definitions()]
    about = yaml.safe_load(made["Chart.yaml"])
    assert (about["name"], about["version"], about["appVersion"]) == (f"{name}-operator", "1.2.3", "1.2.3")
    assert not [path for path, text in made.items() if "@" in text and path.startswith("templates/")]


def test_its_pods_run_as_those_of_the_manifests_who_can_read_mounted_keys() -> None:
    """A mounted Secret is root's, and readable by its group: that has to be a group of the program's user."""
    objs = Installation(operators=[find("nacos")], namespace="tools").everything()
    (pod,) = (obj["spec"]["template"]["spec"] for obj in objs if obj["kind"] == "Deployment")
    context = pod["securityContext"]
    assert context["fsGroup"] == context["runAsUser"]
    made = chart(find("nacos"), "1.2.3")
    for name in ("deployment", "management-deployment"):
        lines = made[f"templates/{name}.yaml"].splitlines()
        start = lines.index("      securityContext:")
        end = next(n for n, line in enumerate(lines) if n > start and not line.startswith(" " * 8))
        assert yaml.safe_load("\n".join(lines[start:end])) == {"securityContext": context}


@pytest.mark.spec("O-96")
def test_a_sharded_operator_has_the_replicas_of_its_sharding() -> None:
    controller = Controller(ConfigMap, nothing)
    alone = Manager(name="shop").add(controller)
    sharded = Manager(name="shop", sharding=Sharding(name="shop", replicas=5)).add(controller)
    for manager, replicas, comment in (
        (alone, 2, "# How many pods: one works, the others stand by for its Lease."),
        (sharded, 5, "# How many pods: all work, each on its share of the keys."),
    ):
        made = chart(as_operator(manager), "1.2.3")
        assert yaml.safe_load(made["values.yaml"])["replicas"] == replicas
        assert made["values.yaml"].splitlines()[0] == comment
        schema = json.loads(made["values.schema.json"])
        assert schema["properties"]["replicas"] == {"type": "integer"}


def test_the_schema_knows_every_value() -> None:
    made = chart(find("webapp"), "1.2.3")
    values, schema = yaml.safe_load(made["values.yaml"]), json.loads(made["values.schema.json"])
    assert set(values) <= set(schema["properties"])
    assert schema["additionalProperties"] is False


def test_the_command_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chart", "webapp", "--dir", str(tmp_path)]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "webapp-operator")
    assert (tmp_path / "webapp-operator" / "templates" / "deployment.yaml").exists()
    assert main(["chart", "webapp", "--dir", str(tmp_path)]) == 0, "a chart may be made again"


POOLS = """
from typing import Any
from konverge import Context, Controller, Manager, Review, validating
from tests.objects.pools import Pool, PoolV1, PoolV3

@validating(Pool)
def check(review: Review[Pool]) -> None: ...

async def fill(ctx: Context[Pool]) -> None: ...

"""
PLAIN = POOLS + 'manager = Manager(name="pools").add(Controller(Pool, fill))'
CONVERTED = POOLS + 'manager = Manager(name="pools").add(Controller(Pool, fill, versions=[PoolV1, Pool, PoolV3]))'
REVIEWED = CONVERTED + ".add_webhook(check)"
POOL = "pools.pools.example.com.yaml"
OF_WEBHOOKS = {"templates/webhooks.yaml", "webhooks/ValidatingWebhookConfiguration.yaml", f"definitions/{POOL}"}


def paths(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


def pools_chart(folder: Path, code: str) -> set[str]:
    """The files in the folder of the chart, after the command."""
    file = folder / f"pools_{len(code)}.py"  # a name of its own, because modules are kept
    file.write_text(code)
    assert main(["chart", str(file), "--dir", str(folder)]) == 0
    return paths(folder / "pools-operator")


@pytest.mark.spec("O-95")
def test_made_again_it_has_no_files_of_another_version(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Helm would install a definition twice, and fill a template whose values are gone."""
    plain = pools_chart(tmp_path, PLAIN)
    assert capsys.readouterr().err == ""
    assert f"crds/{POOL}" in plain
    reviewed = pools_chart(tmp_path, REVIEWED)
    assert reviewed ^ plain == OF_WEBHOOKS | {f"crds/{POOL}"}
    told = capsys.readouterr()
    assert f"removed {tmp_path}/pools-operator/crds/{POOL}" in told.err
    assert told.out == f"{tmp_path}/pools-operator\n"
    assert pools_chart(tmp_path, CONVERTED) == reviewed - {"webhooks/ValidatingWebhookConfiguration.yaml"}
    pools_chart(tmp_path, REVIEWED)
    assert pools_chart(tmp_path, PLAIN) == plain


@pytest.mark.spec("O-95")
def test_made_again_it_keeps_what_users_put_there(tmp_path: Path) -> None:
    made = pools_chart(tmp_path, PLAIN)
    folder, elsewhere = tmp_path / "pools-operator", tmp_path / "elsewhere"
    mine = {
        *("README.md", "webhooks.yaml", "templates/mine.yaml", "templates/tests/webhooks.yaml"),
        *("definitions/README.md", "definitions/yaml", "definitions/mine.yaml.orig"),
        *("rules/mine.yaml", "monitoring/mine.json", "policies/mine.yaml", "webhooks/mine.yaml", "crds/README.md"),
        *("crds/mine.yaml", "crds/certificates.cert-manager.io.yaml", "crds/pools.of.pools.example.com.yaml"),
        *("crds/pools.pools-example.com.yaml", "crds/lakes.pools.example.com.yaml/mine"),
    }
    write_folder(folder, dict.fromkeys([*mine, "crds/seas.pools.example.com.yaml"], "a file"))
    assert pools_chart(tmp_path, PLAIN) == made | mine, "and of the operator's group it has its own definitions alone"

    write_folder(elsewhere, {POOL: "a file"})
    (folder / "crds" / "seas.pools.example.com.yaml").symlink_to(elsewhere / POOL)
    (folder / "definitions").rename(folder / "definitions-before")
    (folder / "definitions").symlink_to(elsewhere)
    pools_chart(tmp_path, PLAIN)
    assert (folder / "crds" / "seas.pools.example.com.yaml").is_symlink()
    assert (folder / "definitions" / POOL).read_text() == "a file"


@pytest.mark.spec("O-95")
@pytest.mark.parametrize("name", SUMMARIES)
def test_a_stranger_of_the_same_name_takes_nothing_over(name: str, tmp_path: Path) -> None:
    ours = chart(find(name), "1.2.3")
    other = replace(find(name), image="stranger:1", policies=lambda name: [])
    theirs = chart(other, "1.2.3")
    write_folder(tmp_path, ours)
    found = {file.relative_to(tmp_path).as_posix() for file in leftovers(tmp_path, other, theirs)}
    assert found == set(ours) - set(theirs)
    assert bool(found) is (name != "webapp")


def test_it_does_not_write_over_something_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "webapp-operator"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    assert main(["chart", "webapp", "--dir", str(tmp_path)]) == 2
    assert "give another --dir" in capsys.readouterr().err


@pytest.mark.spec("N-21", "N-22")
def test_the_chart_of_nacos_has_the_management_service_and_others_do_not() -> None:
    made, other = (chart(find(name), "1.2.3") for name in ("nacos", "webapp"))
    assert yaml.safe_load(made["values.yaml"])["management"]["enabled"] is False, "who wants it says so"
    assert yaml.safe_load(made["rules/callers.yaml"]) == caller_rules()
    schema = json.loads(made["values.schema.json"])
    assert schema["properties"]["management"]["additionalProperties"] is False
    assert "global" not in schema["properties"]["management"]["properties"]
    assert not [path for path, text in other.items() if "management-" in path or "callers" in path]
    assert "management" not in yaml.safe_load(other["values.yaml"])
    assert not [path for path in made if path.startswith("only")]


def test_the_chart_of_wukong_has_its_policy_and_others_have_none() -> None:
    made, other = (chart(find(name), "1.2.3") for name in ("wukong", "webapp"))
    specs = {policy["kind"]: policy["spec"] for policy in find("wukong").policies("")}
    assert {path: yaml.safe_load(text) for path, text in made.items() if path.startswith("policies/")} == {
        f"policies/{kind}.yaml": spec for kind, spec in specs.items()
    }
    assert yaml.safe_load(made["values.yaml"])["deletionProtection"] == {"enabled": True}
    assert "templates/deletion-protection.yaml" in made
    assert not [path for path in other if "polic" in path or "protection" in path]
