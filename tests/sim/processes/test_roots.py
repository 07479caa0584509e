"""Containers with a `/` of their own: what they see, as whom they run, and that all else is as for any process pod.

Where the kernel does not allow it these tests are skipped with its reason; that it is said to the pod is tested
everywhere.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from konverge.objects.codec import from_dict
from konverge.objects.kinds.core_v1 import Container, Event, Pod
from konverge.sim.cluster import Cluster
from konverge.sim.processes import ProcessRule, RuleError, disk, plan, read_rules, roots, runtime, trampoline
from konverge.sim.processes.environment import ConfigError, Self
from konverge.sim.processes.images import Image, Settings
from konverge.sim.processes.isolation import why_no_roots, why_not
from konverge.sim.processes.rules import load
from tests.sim.conftest import SPACE
from tests.sim.processes.image_files import layout, small_root, tar
from tests.sim.processes.support import (
    is_over,
    is_ready,
    is_running,
    main_status,
    marked,
    output,
    process_cluster,
    script,
    until,
    until_gone,
    waits_for,
)
from tests.sim.processes.test_sessions import ran

pytestmark = pytest.mark.spec("S-43")

WHY_NOT = why_not() or why_no_roots()
possible = pytest.mark.skipif(bool(WHY_NOT), reason=f"containers cannot have a root here: {WHY_NOT}")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_root(tmp_path_factory.mktemp("image"))


@asynccontextmanager
async def cluster_of(root: Path, **rule: Any) -> AsyncIterator[Cluster]:
    async with process_cluster(ProcessRule(image="box:*", root=str(root), **rule)) as cluster:
        yield cluster


def box(name: str, text: str, pod: dict[str, Any] | None = None, **container: Any) -> Pod:
    """A pod whose container runs a shell script in the image."""
    shell = {"image": "box:1", "command": ["sh", "-c", text], "args": []}
    return script(name, "", pod=pod, **{**shell, **container})


def volumes(*sources: dict[str, Any]) -> dict[str, Any]:
    return {"volumes": [{"name": f"v{number}", **source} for number, source in enumerate(sources)]}


def mounts(*paths: str, **more: Any) -> list[dict[str, Any]]:
    return [{"name": f"v{number}", "mountPath": path, **more} for number, path in enumerate(paths)]


def config_map(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "conf", "namespace": SPACE}, "data": data}


# ------------------------------------------------------------------ what it sees


@possible
async def test_it_sees_its_image_and_nothing_else(root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of this machine")
    text = f"ls -A /; cat {tmp_path}/secret; cat /proc/1/root{tmp_path}/secret; ls -d /proc/[0-9]*"
    async with cluster_of(root) as cluster:
        said = await output(cluster, box("look", text))
    image = sorted(entry.name for entry in root.iterdir())
    seen = [line for line in said if re.fullmatch(r"[a-z0-9.]+", line)]
    assert seen == sorted({*image, "dev", "etc", "proc", "run", "sys", "tmp"})
    assert "of this machine" not in said
    assert {"/proc/1", "/proc/2"} <= set(said)
    assert len([line for line in said if line.startswith("/proc/")]) <= 3, "the first process, the shell and ls"


@possible
async def test_what_it_writes_is_gone_with_it_and_the_image_stays(root: Path) -> None:
    before = sorted(root.rglob("*"))
    text = "ls /left; echo x > /left && echo x > /etc/left && echo x > /tmp/left && echo written; exit 3"
    async with cluster_of(root) as cluster:
        pod = box("again", text, pod={"restartPolicy": "OnFailure"})
        await cluster.client.create(pod)
        status = main_status(
            await until(cluster.client, "again", lambda pod: (main_status(pod) or _NONE).restart_count)
        )
        said = (await cluster.client.log("again", SPACE, previous=True)).splitlines()
        assert status is not None
        assert "written" in said
        assert "/left" not in said, "the second run found what the first had written"
    assert sorted(root.rglob("*")) == before


_NONE = from_dict(Pod, {"status": {"containerStatuses": [{"name": "", "restartCount": 0}]}}).status.container_statuses[
    0
]


@possible
async def test_volumes_are_at_their_paths_with_their_modes(root: Path) -> None:
    sources = volumes(
        {"configMap": {"name": "conf", "defaultMode": 0o440, "items": [{"key": "a", "path": "deep/a", "mode": 0o644}]}},
        {"emptyDir": {}},
        {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
        {"configMap": {"name": "conf", "defaultMode": 0o440}},
    )
    text = (
        "cat /etc/app/deep/a /down/name; echo; stat -L -c '%a %u' /etc/app/deep/a /all/b /data /etc/app; "
        "echo x > /data/x && echo writable; echo x > /all/x || echo read-only; echo x > /etc/app/x || echo read-only"
    )
    async with cluster_of(root) as cluster:
        await cluster.client.create(config_map(a="one ", b="two"))
        said = await output(
            cluster, box("volumes", text, sources, volumeMounts=mounts("/etc/app", "/data", "/down", "/all"))
        )
        assert cluster.processes is not None
        outside = next((cluster.processes._root / "pods").iterdir()) / "volumes"
        assert stat.S_IMODE(outside.stat().st_mode) == 0o700, "modes inside open nothing outside"
    assert said[0] == "one volumes"
    assert said[1:5] == ["644 0", "440 0", "777 0", "755 0"]
    assert [line for line in said[5:] if "sh:" not in line] == ["writable", "read-only", "read-only"]


@possible
async def test_mounts_may_be_read_only_parts_and_within_each_other(root: Path) -> None:
    sources = volumes({"emptyDir": {}}, {"emptyDir": {}}, {"configMap": {"name": "conf"}})
    wanted = [
        {"name": "v0", "mountPath": "/data"},
        {"name": "v1", "mountPath": "/data/inner", "readOnly": True},
        {"name": "v0", "mountPath": "/part", "subPath": "deep/part"},
        {"name": "v2", "mountPath": "/etc/one.conf", "subPath": "a"},
    ]
    text = (
        "echo x > /data/inner/x || echo refused; echo x > /part/seen; cat /data/deep/part/seen /etc/one.conf; echo; "
        "echo x > /etc/one.conf || echo refused"
    )
    async with cluster_of(root) as cluster:
        await cluster.client.create(config_map(a="text"))
        said = await output(cluster, box("parts", text, sources, volumeMounts=wanted))
    assert [line for line in said if "sh:" not in line] == ["refused", "x", "text", "refused"]


@possible
async def test_the_token_of_its_account_names_and_its_own_name_are_where_programs_look(root: Path) -> None:
    text = (
        "ls /var/run/secrets/kubernetes.io/serviceaccount; uname -n; cat /etc/hosts; echo $HOSTNAME $POD_IP $HOME $PATH"
    )
    async with process_cluster(ProcessRule(image="box:*", root=str(root)), controllers=True) as cluster:
        said = await output(cluster, box("named", text))
        pod = await cluster.client.get(Pod, "named", SPACE)
    assert said[:4] == ["ca.crt", "namespace", "token", "named"]
    assert f"{pod.status.pod_ip}\tnamed" in said
    assert said[-1] == f"named {pod.status.pod_ip} / {roots.PATH}"


@possible
@pytest.mark.parametrize("read_only", [False, True])
async def test_a_root_may_be_read_only(root: Path, read_only: bool) -> None:
    text = "echo x > /new && echo root; echo x > /data/new && echo volume; echo x > /dev/null && echo null"
    async with cluster_of(root) as cluster:
        context = {"readOnlyRootFilesystem": read_only}
        pod = box("ro", text, volumes({"emptyDir": {}}), volumeMounts=mounts("/data"), securityContext=context)
        said = [line for line in await output(cluster, pod) if "sh:" not in line]
    assert said == (["volume", "null"] if read_only else ["root", "volume", "null"])


@possible
async def test_links_of_an_image_lead_nowhere_on_this_machine(root: Path, tmp_path: Path) -> None:
    outside, image = tmp_path / "outside", tmp_path / "image"
    outside.mkdir()
    shutil.copytree(root, image, symlinks=True)
    for name in ("out", "dev"):
        (image / name).symlink_to(f"../../../../../..{outside}")
    (image / "etc").mkdir()
    (image / "etc/hosts").symlink_to(outside / "hosts")
    (image / "etc/resolv.conf").symlink_to(outside / "resolv.conf")
    sources = volumes({"emptyDir": {}})
    async with cluster_of(image) as cluster:
        text = "echo hi > /out/deep/file && cat /out/deep/file; echo x > /out/new"
        said = await output(cluster, box("links", text, sources, volumeMounts=mounts("/out/deep")))
    assert "hi" in said, said
    assert list(outside.iterdir()) == []


BEFORE = trampoline._BEFORE


@possible
@pytest.mark.parametrize("below", ["/made", "/made/deep"])
async def test_no_path_of_a_pod_leads_to_what_was_there_before_the_image(
    root: Path, tmp_path: Path, below: str
) -> None:
    """While a container is made there is a moment when this machine's file system has a name in it."""
    outside, image = tmp_path / "outside", tmp_path / "image"
    outside.mkdir()
    shutil.copytree(root, image, symlinks=True)
    (image / "link").symlink_to(f"{BEFORE}{outside}")
    text = "echo x > file; echo done"
    for number, path in enumerate((f"{BEFORE}{outside}{below}", f"/link{below}")):
        async with cluster_of(image) as cluster:
            sources = volumes({"emptyDir": {}})
            pod = box(f"reaching-{number}", text, sources, volumeMounts=mounts(path), workingDir=f"{path}-cwd")
            assert await output(cluster, pod) == ["done"]
            said = await output(cluster, box(f"looking-{number}", f"ls {BEFORE}/bin"))
            assert "sh" not in said
    assert list(outside.iterdir()) == []


@possible
@pytest.mark.parametrize("path", ["/", "/proc", "/proc/1/ns", "/up", "/data/up"])
async def test_nothing_is_mounted_at_the_root_or_in_proc(root: Path, tmp_path: Path, path: str) -> None:
    image = tmp_path / "image"
    shutil.copytree(root, image, symlinks=True)
    (image / "data").mkdir()
    for link in ("up", "data/up"):
        (image / link).symlink_to("/")
    async with cluster_of(image) as cluster:
        await cluster.client.create(box("over", "true", volumes({"emptyDir": {}}), volumeMounts=mounts(path)))
        status = main_status(await until(cluster.client, "over", is_over))
    assert status is not None
    assert status.state is not None
    assert status.state.terminated is not None
    assert "nothing is mounted at / or in /proc" in (status.state.terminated.message or "")


@possible
async def test_what_it_writes_has_a_bound(root: Path) -> None:
    text = "i=0; while [ $i -lt 2000 ]; do echo 01234567890123456789012345 >> /big || exit 4; i=$((i+1)); done"
    async with cluster_of(root) as cluster:
        for name, limits, code in (("small", {"ephemeral-storage": "16Ki"}, 4), ("free", {}, 0)):
            await cluster.client.create(box(name, text, resources={"limits": limits}))
            status = main_status(await until(cluster.client, name, is_over))
            assert status is not None
            assert status.state is not None
            assert status.state.terminated is not None
            assert status.state.terminated.exit_code == code


# ------------------------------------------------------------------ as whom it runs


@possible
async def test_it_is_the_user_that_its_security_context_names_and_has_no_rights(root: Path) -> None:
    text = "id -u; id -g; id -G; cat /proc/self/status; echo x > /data/x && stat -c %u /data/x"
    async with cluster_of(root) as cluster:
        for name, context, ids in (("zero", {}, "0 0"), ("some", {"runAsUser": 1234, "runAsGroup": 5}, "1234 5")):
            pod = box(name, text, volumes({"emptyDir": {}}), volumeMounts=mounts("/data"), securityContext=context)
            said = await output(cluster, pod)
            assert " ".join(said[:2]) == ids
            assert said[2] == ids.split()[1]
            assert [line for line in said if line.startswith(("CapEff", "CapPrm"))] == [
                "CapPrm:\t0000000000000000",
                "CapEff:\t0000000000000000",
            ]
            assert "NoNewPrivs:\t1" in said
            assert said[-1] == ids.split()[0]


@possible
async def test_on_this_machine_it_is_an_unprivileged_user(root: Path) -> None:
    async with cluster_of(root) as cluster:
        await cluster.client.create(box("web", "echo ready; sleep 1000 & wait"))
        pod = await until(cluster.client, "web", is_running)
        async for _ in cluster.client.log_lines("web", SPACE):
            break
        assert cluster.processes is not None
        user = cluster.processes._user(pod) or os.getuid()
        owners = {Path(f"/proc/{pid}").stat().st_uid for pid in marked(pod.metadata.uid) if _is_program(pid)}
        assert owners == {user}
        assert user != 0


def _is_program(pid: int) -> bool:
    return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0] == b"sh"


@possible
async def test_root_is_refused_to_whom_must_not_be_root(root: Path) -> None:
    async with cluster_of(root) as cluster:
        await cluster.client.create(box("refused", "true", securityContext={"runAsNonRoot": True}))
        status = main_status(await until(cluster.client, "refused", waits_for("CreateContainerConfigError")))
    assert status is not None
    assert status.state is not None
    assert status.state.waiting is not None
    assert status.state.waiting.message == "container has runAsNonRoot and image will run as root"


# ------------------------------------------------------------------ as for any process pod


@possible
@pytest.mark.spec("S-44")
async def test_commands_run_beside_it_in_its_root(root: Path) -> None:
    async with cluster_of(root) as cluster:
        pod = box("web", "echo hi > /tmp/own; echo ready; exec sleep 1000", securityContext={"runAsUser": 77})
        await cluster.client.create(pod)
        await until(cluster.client, "web", is_running)
        async for _ in cluster.client.log_lines("web", SPACE):
            break
        look = ["sh", "-c", "id -u; cat /tmp/own; uname -n; cat /proc/self/status; cat /proc/1/environ >&2; exit 5"]
        for flags in (("stdout", "stderr"), ("stdout", "tty")):
            said, status = await ran(cluster, look, *flags)
            lines = said[1].decode().split("\r\n" if "tty" in flags else "\n")
            assert lines[:3] == ["77", "hi", "web"]
            assert [line for line in lines if line.startswith(("CapEff", "NoNewPrivs"))] == [
                "CapEff:\t0000000000000000",
                "NoNewPrivs:\t1",
            ]
            assert status["details"]["causes"][0]["message"] == "5"
        said, status = await ran(cluster, ["no-such-program"], "stdout")
        assert 'exec: "no-such-program": executable file not found in $PATH' in status["message"]


@possible
@pytest.mark.spec("S-44")
async def test_probes_and_hooks_are_run_in_it(root: Path) -> None:
    probe = {"exec": {"command": ["cat", "/tmp/hooked"]}, "periodSeconds": 1}
    hooks = {
        "postStart": {"exec": {"command": ["sh", "-c", "echo started > /tmp/hooked"]}},
        "preStop": {"exec": {"command": ["sh", "-c", "echo stopping > /data/stopped"]}},
    }
    text = "trap 'cat /data/stopped > /dev/termination-log; exit 9' TERM; while :; do sleep 0.05; done"
    async with cluster_of(root) as cluster:
        beside = {"volumeMounts": mounts("/data"), "lifecycle": hooks, "readinessProbe": probe}
        pod = box("web", text, volumes({"emptyDir": {}}), **beside)
        pod.metadata.finalizers = ["test/kept"]
        await cluster.client.create(pod)
        await until(cluster.client, "web", is_ready)
        await cluster.client.delete(Pod, "web", SPACE)
        status = main_status(await until(cluster.client, "web", is_over))
    assert status is not None
    assert status.state is not None
    assert status.state.terminated is not None
    assert (status.state.terminated.exit_code, status.state.terminated.message) == (9, "stopping\n")


@possible
@pytest.mark.spec("S-44")
async def test_a_container_that_does_not_listen_is_killed_after_its_grace_and_leaves_nothing(root: Path) -> None:
    async with cluster_of(root) as cluster:
        deaf = box(
            "deaf", "trap '' TERM; echo ready; while :; do sleep 1000; done", {"terminationGracePeriodSeconds": 1}
        )
        await cluster.client.create(deaf)
        pod = await until(cluster.client, "deaf", is_running)
        await cluster.client.delete(Pod, "deaf", SPACE)
        await until_gone(cluster.client, "deaf")
        assert cluster.processes is not None
        for closing in list(cluster.processes._closing):
            await closing
        assert marked(pod.metadata.uid) == []
        assert not (cluster.processes._root / "pods" / pod.metadata.uid).exists()
    assert "konverge" not in Path("/proc/self/mountinfo").read_text().replace(str(Path(__file__).parents[3]), "")


@possible
@pytest.mark.spec("S-44")
@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["nothing"], 'exec: "nothing": executable file not found in $PATH'),
        (["/bin/nothing"], 'exec: "/bin/nothing": stat /bin/nothing: no such file or directory'),
        (["/data/file"], 'exec: "/data/file": stat /data/file: no such file or directory'),
    ],
)
async def test_a_program_that_the_image_does_not_have_is_a_start_error(
    root: Path, command: list[str], message: str
) -> None:
    async with cluster_of(root) as cluster:
        await cluster.client.create(box("wrong", "", command=command))
        status = main_status(await until(cluster.client, "wrong", is_over))
    assert status is not None
    assert status.state is not None
    assert status.state.terminated is not None
    assert (status.state.terminated.reason, status.state.terminated.message) == ("StartError", message)


@possible
@pytest.mark.spec("S-45")
async def test_an_image_says_what_runs_where_and_as_whom(root: Path, tmp_path: Path) -> None:
    files = [
        (path.relative_to(root).as_posix(), path.read_bytes()) for path in sorted(root.rglob("*")) if path.is_file()
    ]
    passwd = tar(("etc/passwd", b"app:x:1000:1000::/home/app:/bin/sh\n"), ("srv", None))
    config = {
        "Entrypoint": ["sh", "-c"],
        "Cmd": ["id -u; pwd; echo $HOME $OWN; echo x > /bin/new && echo writable"],
        "Env": ["OWN=image", f"PATH={roots.PATH}"],
        "WorkingDir": "/srv/made",
        "User": "app",
    }
    image = layout(tmp_path / "oci", [tar(*files, mode=0o755), passwd], config)
    async with cluster_of(image) as cluster:
        assert await output(cluster, box("plain", "", command=[])) == [
            "1000",
            "/srv/made",
            "/home/app image",
            "writable",
        ]
        more: dict[str, Any] = {
            "args": ["echo $OWN; pwd"],
            "workingDir": "/tmp",
            "env": [{"name": "OWN", "value": "pod"}],
        }
        assert await output(cluster, box("changed", "", command=[], **more)) == ["pod", "/tmp"]


# ------------------------------------------------------------------ what is refused


@pytest.fixture
def without_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "why_no_roots", lambda: "mount overlay: Operation not permitted")


@pytest.mark.skipif(bool(why_not()), reason="processes cannot be isolated here at all")
async def test_where_the_kernel_refuses_the_pod_says_so(root: Path, without_namespaces: None) -> None:
    async with cluster_of(root) as cluster:
        await cluster.client.create(box("refused", "true"))
        status = main_status(await until(cluster.client, "refused", waits_for("CreateContainerError")))
    assert status is not None
    assert status.state is not None
    assert status.state.waiting is not None
    message = status.state.waiting.message or ""
    assert "which there are not: mount overlay: Operation not permitted" in message
    assert "`konverge doctor` says" in message


@possible
async def test_a_host_path_and_an_image_that_is_not_there_are_refused(root: Path, tmp_path: Path) -> None:
    async with cluster_of(tmp_path / "nowhere") as cluster:
        await cluster.client.create(box("lost", "true"))
        status = main_status(await until(cluster.client, "lost", waits_for("CreateContainerConfigError")))
        assert status is not None
        assert "there is no" in str(status.state)
    async with cluster_of(root) as cluster:
        host = volumes({"hostPath": {"path": "/etc"}})
        await cluster.client.create(box("greedy", "true", host, volumeMounts=mounts("/host")))
        async with aclosing(cluster.client.watch(Event, SPACE)) as events:
            async for event in events:
                if event.object.reason == "FailedMount":
                    assert "hostPath /etc is not allowed" in (event.object.message or "")
                    break


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"isolated": False}, "drop `isolated`"),
        ({"files": ["/opt"]}, "drop `files`"),
        ({"translate": True}, "drop `translate`"),
        ({"env": {"A": "{volume:x}"}}, "there is no {volume}"),
        ({"env": {"A": "{kubeconfig}"}}, "there is no {kubeconfig}"),
    ],
)
def test_rules_that_make_no_sense_with_a_root_are_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(RuleError, match=re.escape(message)):
        read_rules([{"image": "*", "root": "/srv/image", **more}])


def test_with_a_root_the_containers_own_command_counts_unless_the_rule_says_otherwise() -> None:
    assert read_rules([{"image": "*", "root": "/srv/image"}])[0].runs_anything
    assert not read_rules([{"image": "*", "root": "/srv", "container_command": "ignore"}])[0].runs_anything
    assert not ProcessRule(image="*", command=("true",)).runs_anything


def test_a_root_begins_at_the_folder_of_the_rules(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text("[{image: a, root: images/a}, {image: b, root: /b}, {image: c, command: [d]}]")
    assert [rule.root for rule in load(tmp_path / "rules.yaml")] == [str(tmp_path / "images/a"), "/b", ""]


# ------------------------------------------------------------------ plans, without any process


def made(rule: ProcessRule, image: Image, home: Path, **container: Any) -> plan.Plan:
    spec = from_dict(Container, {"name": "main", "image": "box:1", **container})
    pod = from_dict(Pod, {"metadata": {"name": "web", "namespace": SPACE, "uid": "u"}, "spec": {"containers": []}})
    mounted = disk.prepare(home, spec, {"v0": (home / "volume", True)}, {}, in_place=True)
    place = plan.Place(home / "volumes", home / "names" / "hosts", home / "kubeconfig")
    return plan.make(spec, rule, Self(pod, "127.1.0.1", "127.0.0.1"), mounted, {}, place, image)


@pytest.mark.parametrize(
    ("rule", "container", "command"),
    [
        ({}, {}, ["/app", "serve"]),
        ({}, {"args": ["check"]}, ["/app", "check"]),
        ({}, {"command": ["sh"]}, ["sh"]),
        ({}, {"command": ["sh"], "args": ["-c", "x"]}, ["sh", "-c", "x"]),
        ({"command": ["/other", "{pod_ip}"]}, {}, ["/other", "127.1.0.1"]),
        ({"command": ["/other"]}, {"args": ["x"]}, ["/other", "x"]),
        ({"command": ["/other"]}, {"command": ["sh"], "args": ["x"]}, ["sh", "x"]),
        ({"container_command": "ignore"}, {"command": ["sh"]}, ["/app", "serve"]),
        (
            {"container_command": "append", "container_args": "append"},
            {"command": ["a"], "args": ["b"]},
            ["/app", "a", "b"],
        ),
    ],
)
def test_commands_of_image_rule_and_container(
    tmp_path: Path, rule: dict[str, Any], container: dict[str, Any], command: list[str]
) -> None:
    image = Image(tmp_path, Settings(["/app"], ["serve"], {}, "/srv"))
    found = made(ProcessRule(image="*", root="/x", **rule), image, tmp_path / "home", **container)
    assert list(found.command) == command
    assert str(found.cwd) == "/srv"


def test_an_image_without_a_command_needs_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no command specified"):
        made(ProcessRule(image="*", root="/x"), Image(tmp_path), tmp_path / "home")


def test_templates_are_paths_of_the_container(tmp_path: Path) -> None:
    rule = ProcessRule(image="*", root="/x", command=("{mount:/srv/a}", "{root}", "{hosts}", "{termination_log}"))
    assert made(rule, Image(tmp_path), tmp_path / "home").command == [
        "/srv/a",
        "/",
        "/etc/hosts",
        "/dev/termination-log",
    ]


def test_the_mount_plan_has_outer_mounts_first_and_the_pods_own_instead_of_ours(tmp_path: Path) -> None:
    mounted = disk.Mounts(tmp_path, in_place=True)
    for path, writable in (("/a/b/c", True), ("/a", False), ("/etc/hosts", True), ("/sys", True)):
        mounted.add(path, tmp_path / "x", writable=writable)
    who = roots.Account(1, 2, "/")
    spec = from_dict(Container, {"name": "main"})
    found = roots.make(spec, Image(tmp_path), who, mounted, names=tmp_path / "names", hostname="web", cwd="/")
    targets = [(target, writable) for _, target, writable in found.mounts]
    assert targets[:2] == [("/a", False), ("/sys", True)] or targets[:2] == [("/sys", True), ("/a", False)]
    assert [target for target, _ in targets].index("/a/b/c") > 1
    assert [target for target, _ in targets].count("/sys") == 1
    assert found.links == ()
    assert found.ids == (1, 2)


# ------------------------------------------------------------------ memory


@possible
@pytest.mark.spec("S-57")
async def test_a_volume_in_memory_is_one_for_all_containers_and_runs_of_its_pod(root: Path) -> None:
    sources = volumes({"emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}, {"emptyDir": {}})
    text = "stat -f -c %T /memory; stat -c %a /memory; ls /memory; echo x > /memory/x; exit 1"
    pod = box("memory", text, sources | {"restartPolicy": "OnFailure"}, volumeMounts=mounts("/memory", "/disk"))
    async with cluster_of(root) as cluster:
        await cluster.client.create(pod)
        await until(cluster.client, "memory", lambda pod: (main_status(pod) or _NONE).restart_count)
        made = await until(cluster.client, "memory", waits_for("CrashLoopBackOff"))
        said = (await cluster.client.log("memory", SPACE)).splitlines()
        assert said == ["tmpfs", "777", "x"]
        folders = list(Path("/dev/shm").glob(f"konverge-memory-*/{made.metadata.uid}"))
        assert len(folders) == 1
        await cluster.client.delete(Pod, "memory", SPACE, grace_period=0)
        await until_gone(cluster.client, "memory")
    assert not folders[0].parent.exists()
