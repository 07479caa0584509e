"""Operators of users by the commands: whose settings count, what is printed, what is said when it does not work."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge.cli.arguments import chosen_operators
from konverge.cli.exit import CommandFailed, UsageError
from konverge.cli.main import main, parser
from konverge.cli.run import _declared_config, make_manager
from konverge.objects import ObjectMeta
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.runtime.config import load_configuration
from konverge.runtime.manager import Manager
from konverge.sim.cluster import Cluster

NOTES = '''
"""Texts that are kept."""
from konverge import Context, Controller, CustomResource, LeaderElection, Manager, Model, ObjectMeta, Settings
from konverge.objects.kinds.core_v1 import ConfigMap

class Spec(Model):
    text: str

class Note(CustomResource[Spec, Model], group="example.com", version="v1"):
    """A text."""

async def reconcile(ctx: Context[Note]) -> None:
    await ctx.apply(ConfigMap(metadata=ObjectMeta(name=ctx.request.name), data={"text": ctx.obj.spec.text}))

election = LeaderElection(name="the-notes", namespace="notes")
where = ("127.0.0.1", 1)
manager = Manager(name="keeper", leader_election=election, settings=Settings(workers=3), health_address=where)
manager.add(Controller(Note, reconcile, owns=[ConfigMap]))
'''


@pytest.fixture(autouse=True)
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = list(sys.path)
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "notes.py"
    file.write_text(NOTES)
    yield file
    sys.path[:] = path
    sys.modules.pop("notes", None)


def made(cluster: Cluster, *arguments: str) -> Manager:
    """The manager that `konverge run` makes."""
    parsed = parser().parse_args(["run", *arguments, "--metrics-bind-address", "0", "--health-probe-bind-address", "0"])
    operators = chosen_operators(parsed.operators)
    settings = load_configuration(parsed.config, code=_declared_config(operators))
    return make_manager(parsed, operators, settings, cluster.client, "here")


@pytest.mark.spec("O-02")
@pytest.mark.virtual
async def test_the_settings_of_a_users_manager_count_and_options_count_more(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("workers: 7\nreconcileConfig: {timeout: 9s}\n")
    async with Cluster() as cluster:
        manager = made(cluster, "notes.py", "--config", "config.yaml")
        assert (manager.name, manager.settings.workers, manager.settings.timeout) == ("keeper", 3, 9.0)
        assert manager.leader_election is not None
        assert (manager.leader_election.name, manager.leader_election.namespace) == ("the-notes", "notes")
        assert manager.health_address is None
        manager = made(cluster, "notes.py", "--leader-election-namespace", "tools", "--watch-namespace", "shop")
        assert manager.leader_election is not None
        assert (manager.leader_election.name, manager.leader_election.namespace) == ("the-notes", "tools")
        assert [controller.namespaces for controller in manager.controllers] == [("shop",)]
        assert made(cluster, "notes.py", "--no-leader-elect").leader_election is None


@pytest.mark.spec("O-02")
def test_the_probes_are_where_the_command_says_or_the_manager_or_at_the_usual_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken: set[Any] = set()

    def refuse(option: str, where: Any) -> None:
        if where in taken:
            raise CommandFailed(option)

    async def served(arguments: argparse.Namespace, *_: object) -> None:
        seen.append((arguments.metrics_bind_address, arguments.health_probe_bind_address))

    seen: list[Any] = []
    monkeypatch.setattr("konverge.cli.run.refuse_unless_free", refuse)
    monkeypatch.setattr("konverge.cli.run.serve", served)

    def places(*arguments: str) -> Any:
        assert main(["run", *arguments]) == 0
        return seen.pop()

    usual = ("127.0.0.1", 8080), ("127.0.0.1", 8081)
    assert places("webapp") == places("webapp", "notes.py") == usual
    assert places("notes.py") == (usual[0], ("127.0.0.1", 1))
    assert places("notes.py", "--health-probe-bind-address", ":9") == (usual[0], ("0.0.0.0", 9))
    assert places("notes.py", "--health-probe-bind-address", "0", "--metrics-bind-address", "0") == (None, None)
    taken |= {*usual, ("127.0.0.1", 1)}
    assert places("webapp") == (("127.0.0.1", 0), ("127.0.0.1", 0))
    assert main(["run", "webapp", "--metrics-bind-address", "127.0.0.1:8080"]) == 1
    assert main(["run", "notes.py"]) == 1, "where its author wants them there is no other place"
    assert seen == []


@pytest.mark.blocking("loads the operators of its company")
@pytest.mark.spec("O-01", "O-02")
@pytest.mark.virtual
@pytest.mark.parametrize("company", [(), ("webapp",)], ids=["alone", "with webapp"])
async def test_a_users_operator_works_alone_and_in_company_under_its_own_name(company: tuple[str, ...]) -> None:
    from konverge.cli.install_objects import install_definitions

    async with Cluster() as cluster:
        await install_definitions(cluster.client, chosen_operators(["notes.py", *company]))
        async with made(cluster, "notes.py", *company, "--leader-election-namespace", "default").running() as manager:
            note = {"apiVersion": "example.com/v1", "kind": "Note", "metadata": {"name": "a", "namespace": "default"}}
            await cluster.client.create({**note, "spec": {"text": "hello"}})
            await cluster.settle()
            kept = await cluster.client.get(ConfigMap, "a", "default")
            assert kept.data == {"text": "hello"}
            assert [entry.manager for entry in kept.metadata.managed_fields] == ["keeper"]
            assert manager.engines["note"].settings.workers == 3
            await cluster.client.delete(ConfigMap, "a", "default")
            await cluster.settle()
            assert (await cluster.client.get(ConfigMap, "a", "default")).data == {"text": "hello"}


def test_two_operators_of_one_name_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other.py").write_text("from notes import manager\n")
    assert main(["crd", "notes.py", "other.py"]) == 2
    assert "other.py is a second operator of the name 'keeper'" in capsys.readouterr().err


@pytest.mark.virtual
async def test_two_controllers_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("from notes import *\nmanager = Manager(name='o').add(manager.controllers[0])\n")
    async with Cluster() as cluster:
        with pytest.raises(UsageError, match="o: there is already a controller 'note'"):
            made(cluster, "notes.py", "other.py")


@pytest.mark.spec("O-01")
def test_a_mistake_in_a_users_file_is_shown_as_the_user_knows_it(
    notes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notes.write_text("import konverge\nkonverge.nothing\n")
    assert main(["crd", "notes.py"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    lines = printed.err.splitlines()
    assert lines[:2] == ["Traceback (most recent call last):", f'  File "{notes}", line 2, in <module>']
    assert lines[-1].startswith("konverge crd: notes.py cannot be imported (notes.py, line 2): AttributeError: ")
    assert "loading" not in printed.err


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert main(arguments) == 0
    return list(yaml.safe_load_all(capsys.readouterr().out))


@pytest.mark.spec("O-03")
def test_the_manifests_of_a_users_operator_start_it_in_its_image(capsys: pytest.CaptureFixture[str]) -> None:
    objects = printed(capsys, "manifests", "notes:manager", "--image", "example.com/notes:1")
    assert [obj["kind"] for obj in objects] == [
        "CustomResourceDefinition", "Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role",
        "RoleBinding", "Deployment", "Service", "PodDisruptionBudget",
    ]  # fmt: skip
    assert {obj["metadata"].get("namespace", "keeper-system") for obj in objects} == {"keeper-system"}
    deployment = objects[7]
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert deployment["metadata"]["name"] == "keeper-operator"
    assert deployment["metadata"]["labels"]["app.kubernetes.io/part-of"] == "keeper"
    assert (container["image"], container["command"]) == ("example.com/notes:1", ["konverge"])
    parsed = parser().parse_args(container["args"])
    assert (parsed.operators, parsed.leader_election_namespace) == (["notes:manager"], "keeper-system")
    granted = {
        (rule["apiGroups"][0], name): rule["verbs"] for rule in objects[3]["rules"] for name in rule["resources"]
    }
    assert granted == {
        ("", "configmaps"): ["create", "delete", "get", "list", "patch", "watch"],
        ("", "events"): ["create", "patch"],
        ("example.com", "notes"): ["get", "list", "watch"],
        ("example.com", "notes/finalizers"): ["update"],
        ("example.com", "notes/status"): ["patch"],
    }


@pytest.mark.spec("O-03")
def test_operators_of_two_images_need_one_that_has_both(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["manifests", "notes.py", "webapp"]) == 2
    assert "give --image: one that has the programs of keeper and webapp" in capsys.readouterr().err
    objects = printed(capsys, "manifests", "notes.py", "webapp", "--image", "both:1")
    container = next(obj for obj in objects if obj["kind"] == "Deployment")["spec"]["template"]["spec"]["containers"][0]
    assert container["args"][:3] == ["run", "notes.py", "webapp"]
    assert main(["rbac", "notes.py", "webapp"]) == 0


@pytest.mark.virtual
async def test_samples_of_a_users_operator_are_created(tmp_path: Path) -> None:
    from konverge.cli.install_objects import create_samples, install_definitions

    meta = ObjectMeta(name="first", namespace="default")
    sample = {"apiVersion": "example.com/v1", "kind": "Note", "metadata": {"name": meta.name, "namespace": "default"}}
    (tmp_path / "sample.yaml").write_text(yaml.safe_dump({**sample, "spec": {"text": "x"}}))
    operators = chosen_operators(["notes.py"])
    async with Cluster() as cluster:
        await install_definitions(cluster.client, operators)
        await create_samples(cluster.client, operators)
        assert (await cluster.client.get(operators[0].kinds[0], "first", "default")).spec.text == "x"
