"""What a container may ask of its rule, without any process."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from konverge.objects.codec import from_dict
from konverge.objects.kinds.core_v1 import Container
from konverge.sim.processes import ProcessRule, disk
from konverge.sim.processes.disk import MountError
from konverge.sim.processes.permitted import LOADERS, SERVICE_ACCOUNT, Refused, check_env, check_spec
from konverge.sim.processes.rules import load
from tests.sim.processes.attackers import SRV, WEB

pytestmark = pytest.mark.spec("T-14")


def container(**fields: Any) -> Container:
    return from_dict(Container, {"name": "main", "image": "web:1", **fields})


def test_links_in_a_volume_lead_no_file_of_ours_out_of_it(tmp_path: Path) -> None:
    volume, outside = tmp_path / "volume", tmp_path / "outside"
    volume.mkdir()
    outside.mkdir()
    (volume / "away").symlink_to(outside)
    mounts = [{"name": "v", "mountPath": "/data"}, {"name": "v", "mountPath": "/data/away/link"}]
    disk.prepare(tmp_path / "one", container(volumeMounts=mounts), {"v": (volume, False)}, {})
    assert list(outside.iterdir()) == []
    for sub in ("away/made", "away"):
        leaving = container(volumeMounts=[{"name": "v", "mountPath": "/data", "subPath": sub}])
        with pytest.raises(MountError):
            disk.prepare(tmp_path / "two", leaving, {"v": (volume, False)}, {})
    assert list(outside.iterdir()) == []


def test_a_sub_path_that_is_exchanged_for_a_link_is_not_made_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    volume, outside, resolve = tmp_path / "volume", tmp_path / "outside", Path.resolve
    (volume / "sub").mkdir(parents=True)
    outside.mkdir()

    def resolved_and_exchanged(path: Path, strict: bool = False) -> Path:
        result = resolve(path, strict)
        if path == volume / "sub/made" and not (volume / "sub").is_symlink():
            (volume / "sub").rmdir()
            (volume / "sub").symlink_to(outside)
        return result

    monkeypatch.setattr(Path, "resolve", resolved_and_exchanged)
    spec = container(volumeMounts=[{"name": "v", "mountPath": "/data", "subPath": "sub/made"}])
    with suppress(MountError):
        disk.prepare(tmp_path / "home", spec, {"v": (volume, False)}, {})
    assert (volume / "sub").is_symlink()
    assert list(outside.iterdir()) == []


def test_a_volume_that_is_exchanged_for_a_link_is_not_used(tmp_path: Path) -> None:
    volume, outside = tmp_path / "volume", tmp_path / "outside"
    outside.mkdir()
    volume.symlink_to(outside)
    spec = container(volumeMounts=[{"name": "v", "mountPath": "/data", "subPath": "made"}])
    with pytest.raises(MountError):
        disk.prepare(tmp_path / "home", spec, {"v": (volume, False)}, {})
    assert list(outside.iterdir()) == []


def test_nested_mounts_and_sub_paths_are_made_where_they_belong(tmp_path: Path) -> None:
    volume, other = tmp_path / "volume", tmp_path / "other"
    volume.mkdir()
    other.mkdir()
    mounts = [
        {"name": "v", "mountPath": "/data", "subPath": "a/b"},
        {"name": "o", "mountPath": "/data/deep/other/"},
    ]
    made = disk.prepare(tmp_path / "c", container(volumeMounts=mounts), {"v": (volume, False), "o": (other, False)}, {})
    assert (made.root / "data").resolve() == volume / "a" / "b"
    assert (made.root / "data/deep/other").resolve() == made.locate("/data/deep/other") == other


@pytest.mark.parametrize(
    "name",
    [
        "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "PATH", "HOME", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME",
        "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH", "NODE_OPTIONS", "NODE_PATH", "BASH_ENV",
        "ENV", "GIT_SSH_COMMAND", "GIT_CONFIG_COUNT", "PERL5LIB", "PERL5OPT", "RUBYOPT", "RUBYLIB", "KUBECONFIG",
        "GCONV_PATH", "OPENSSL_CONF", "BASH_FUNC_ls%%", "DYLD_INSERT_LIBRARIES", "XDG_CONFIG_HOME",
        "LOADER_PATH", "SPRING_CONFIG_LOCATION", "SPRING_APPLICATION_JSON", "LOGGING_CONFIG", "ODBCSYSINI", "ODBCINI",
        "KRB5_CONFIG", "ASPNETCORE_HOSTINGSTARTUPASSEMBLIES", "TMPDIR",
    ],
)  # fmt: skip
def test_each_of_these_variables(name: str) -> None:
    with pytest.raises(Refused, match="container_env"):
        check_env({name: "theirs"}, {name: "ours"}, WEB)
    check_env({name: "ours"}, {name: "ours"}, WEB)
    check_env({name: "theirs"}, {}, replace(WEB, container_env=(name,)))
    check_env({name: "theirs"}, {}, replace(WEB, env={name: "the rule's"}))
    check_env({name: "theirs"}, {}, replace(WEB, container_command="replace"))


def test_other_variables_are_theirs() -> None:
    names = ("MODE", "NACOS_SERVERS", "GREETING", "DATABASE_PATH", "MY_HOME", "POD_IP", "TZ", "LANG", "JVM_XMS")
    check_env(dict.fromkeys(names, "x"), {}, WEB)


def test_the_documented_list_is_this_one() -> None:
    page = (Path(__file__).parents[3] / "docs/process-pods.md").read_text()
    assert [name for name in LOADERS if f"`{name}`" not in page] == []


@pytest.mark.parametrize("more", [{"container_args": "ignore"}, {"container_args": "append"}])
def test_a_rule_may_allow_arguments(more: dict[str, Any]) -> None:
    check_spec(container(args=["x"]), replace(WEB, **more))
    check_spec(container(args=["x"]), ProcessRule(image="*", command=("run", "{args}")))


@pytest.mark.parametrize(
    ("mount", "rule", "allowed"),
    [
        ("/srv", {}, True),
        ("/srv/below", {}, True),
        ("/srv2", {}, False),
        ("/etc/app", {}, False),
        ("/etc/app", {"mounts": ("/etc/app",)}, True),
        ("/etc/app/conf.d", {"mounts": ("/etc/app",)}, True),
        ("/etc", {"mounts": ("/etc/app",)}, False),
        ("/etc/app-7", {"mounts": ("/etc/app-*",)}, True),
        ("/var/run/secrets/kubernetes.io/serviceaccount", {}, True),
        ("/var/run/secrets/kubernetes.io/serviceaccount/http", {}, False),
        ("/var/run/secrets", {}, False),
        ("/data", {"env": {"DATA": "{mount:/data}"}}, True),
        ("/data", {"workdir": "{mount:/data}"}, True),
        ("/data", {"env": {"DATA": "{{mount:/data}}"}}, False),
        ("/anywhere", {"container_command": "replace"}, True),
    ],
)
def test_where_mounts_are_allowed(mount: str, rule: dict[str, Any], allowed: bool) -> None:
    spec = container(volumeMounts=[{"name": "v", "mountPath": mount}])
    if allowed:
        check_spec(spec, replace(WEB, **rule))
    else:
        with pytest.raises(Refused, match="in `mounts`"):
            check_spec(spec, replace(WEB, **rule))


def test_a_working_folder_in_a_mount_is_allowed_by_the_rules_own() -> None:
    spec = container(workingDir="/srv", volumeMounts=[SRV])
    check_spec(spec, replace(WEB, workdir="{mount:/srv}"))
    for folder in ("/elsewhere", "/srv2", "/"):
        check_spec(container(workingDir=folder, volumeMounts=[SRV]), WEB)


@pytest.mark.parametrize(
    ("folder", "more"),
    [
        ("/srv", {"volumeMounts": [{"name": "v", "mountPath": "/srv/http"}]}),
        ("/srv/./", {"volumeMounts": [{"name": "v", "mountPath": "/srv/a/../http/"}]}),
        ("/srv/a", {"volumeMounts": [{"name": "v", "mountPath": "/srv/a/b/c"}]}),
        ("/srv", {"terminationMessagePath": "/srv/http.py"}),
        ("/srv/http.py", {"terminationMessagePath": "/srv/http.py"}),
        ("/var/run", {"volumeMounts": [{"name": "v", "mountPath": SERVICE_ACCOUNT}]}),
    ],
)
def test_a_working_folder_with_a_mount_in_it_is_refused(folder: str, more: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="`workdir`"):
        check_spec(container(workingDir=folder, **more), WEB)
    check_spec(container(workingDir=folder, **more), replace(WEB, workdir="{root}"))


def test_the_documented_rule_for_nacos_allows_what_the_operator_sets(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs/process-pods.md").read_text()
    [text] = re.findall(r'```yaml\n(- image: "nacos.*?)```', page, re.DOTALL)
    (tmp_path / "rules.yaml").write_text(text)
    [rule] = load(tmp_path / "rules.yaml")
    for engine in ("cluster-mysql-2.4", "cluster-postgres-3.0"):
        golden = Path(__file__).parents[2] / f"operators/nacos/golden/{engine}.yaml"
        names = re.findall(r"^        - name: ([A-Z_]+)$", golden.read_text(), re.MULTILINE)
        assert "SPRING_DATASOURCE_PLATFORM" in names
        check_env(dict.fromkeys(names, "x"), {}, rule)
    with pytest.raises(Refused):
        check_env({"SPRING_CONFIG_LOCATION": "/data"}, {}, rule)
