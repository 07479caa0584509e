"""Process pods from end to end: tiny real processes, started, probed, stopped and restarted by the kubelet."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import subprocess
import sys
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from konverge.apiserver.certificates import make as make_certificates
from konverge.client import MergePatch
from konverge.objects.codec import from_dict
from konverge.objects.kinds.core_v1 import Container, Event, PersistentVolume, PersistentVolumeClaim, Pod
from konverge.sim.cluster import Cluster
from konverge.sim.loop import RealTime
from konverge.sim.processes import disk
from konverge.sim.processes.isolation import Isolation, why_not
from konverge.sim.processes.process import Spawner
from tests.sim.conftest import SPACE
from tests.sim.processes.support import (
    ENDS_WHEN_ASKED,
    PYTHON,
    SCRIPT,
    WAITS,
    is_over,
    is_ready,
    is_running,
    lines,
    main_status,
    marked,
    output,
    process_cluster,
    script,
    until,
    until_gone,
    waits_for,
)

pytestmark = [pytest.mark.long, pytest.mark.spec("S-16")]

POSSIBLE = why_not() == ""


def terminated(pod: Pod) -> Any:
    status = main_status(pod)
    assert status is not None
    assert status.state is not None
    return status.state.terminated


def process_of(cluster: Cluster, pod: Pod, container: str = "main") -> int:
    assert cluster.processes is not None
    process = cluster.processes.runners[pod.metadata.uid].runs[container].process
    assert process is not None
    return process.pid


def alive(pid: int) -> bool:
    """Whether it runs: one that has ended may still wait for its parent to notice."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


# ------------------------------------------------------------------ off unless asked for


@pytest.mark.virtual
async def test_virtual_time_is_refused_with_what_to_do() -> None:
    with pytest.raises(RealTime, match="process pods need real time"):
        async with process_cluster():
            pass


async def test_without_rules_nothing_runs_and_an_image_without_a_rule_is_simulated() -> None:
    async with Cluster(controllers=False, nodes=1) as cluster:
        assert cluster.processes is None
    async with process_cluster() as cluster:
        other = script("other", "raise SystemExit(9)", image="busybox")
        await cluster.client.create(other)
        pod = await until(cluster.client, "other", lambda pod: is_running(pod) or is_over(pod))
        assert cluster.processes is not None
        assert pod.metadata.uid not in cluster.processes.runners


# ------------------------------------------------------------------ a life


@pytest.mark.parametrize(
    ("text", "code", "reason", "phase"),
    [
        ("pass", 0, "Completed", "Succeeded"),
        ("raise SystemExit(3)", 3, "Error", "Failed"),
        ("import os; os.kill(os.getpid(), 9)", 137, "Error", "Failed"),
    ],
)
async def test_the_end_of_a_process_is_the_end_of_its_container(text: str, code: int, reason: str, phase: str) -> None:
    async with process_cluster() as cluster:
        await cluster.client.create(script("one", text))
        pod = await until(cluster.client, "one", is_over)
        end = terminated(pod)
        assert (end.exit_code, end.reason, pod.status.phase) == (code, reason, phase)


async def test_one_that_takes_more_memory_than_its_limit_is_killed_if_the_rule_says_so() -> None:
    rule = replace(SCRIPT, image="*", enforce_memory=True)
    greedy = "import signal; held = bytearray(200_000_000); signal.pause()"
    async with process_cluster(rule) as cluster:
        await cluster.client.create(script("greedy", greedy, resources={"limits": {"memory": "100Mi"}}))
        end = terminated(await until(cluster.client, "greedy", is_over))
        assert (end.exit_code, end.reason) == (137, "OOMKilled")


async def test_a_process_is_asked_to_end_and_its_pod_goes_with_it() -> None:
    async with process_cluster() as cluster:
        await cluster.client.create(script("polite", ENDS_WHEN_ASKED))
        await until(cluster.client, "polite", is_running)
        async for line in cluster.client.log_lines("polite", SPACE):
            assert line == "ready"
            break
        pod = await cluster.client.get(Pod, "polite", SPACE)
        pid = process_of(cluster, pod)
        await cluster.client.delete(Pod, "polite", SPACE)
        last = await until(cluster.client, "polite", lambda pod: terminated(pod) is not None)
        assert terminated(last).exit_code == 7
        await until_gone(cluster.client, "polite")
        assert not alive(pid)


async def test_a_pod_that_is_deleted_while_it_starts_leaves_no_process() -> None:
    async with process_cluster() as cluster:
        for number in range(4):
            made = await cluster.client.create(script(f"brief-{number}", WAITS))
            await until(cluster.client, f"brief-{number}", lambda pod: pod.status.start_time)
            forgotten = when_forgotten(cluster, made.metadata.uid)
            await cluster.client.delete(Pod, f"brief-{number}", SPACE, grace_period=number % 2)
            await until_gone(cluster.client, f"brief-{number}")
            await forgotten.wait()  # the kubelet hears of it when it does
            assert cluster.processes is not None
            await asyncio.gather(*cluster.processes._closing)
            await asyncio.gather(*cluster.processes.spawner._abandoned)
            assert not marked(made.metadata.uid)


def when_forgotten(cluster: Cluster, uid: str) -> asyncio.Event:
    """Set when the kubelet gives up the processes of a pod."""
    assert cluster.processes is not None
    forgotten, forget = asyncio.Event(), cluster.processes.forget

    def noted(item: str) -> None:
        forget(item)
        if item == uid:
            forgotten.set()

    cluster.processes.forget = noted  # type: ignore[method-assign]
    return forgotten


async def test_one_that_does_not_listen_is_killed_when_its_time_is_over() -> None:
    deaf = "import signal; signal.signal(15, signal.SIG_IGN); print('deaf'); signal.pause()"
    async with process_cluster() as cluster:
        await cluster.client.create(script("deaf", deaf, pod={"terminationGracePeriodSeconds": 1}))
        await until(cluster.client, "deaf", is_running)
        async for _ in cluster.client.log_lines("deaf", SPACE):
            break
        await cluster.client.delete(Pod, "deaf", SPACE)
        last = await until(cluster.client, "deaf", lambda pod: terminated(pod) is not None)
        assert terminated(last).exit_code == 137
        await until_gone(cluster.client, "deaf")


async def test_a_killed_process_runs_again_and_what_it_said_before_is_kept() -> None:
    async with process_cluster() as cluster:
        await cluster.client.create(
            script("again", "import os; print(os.urandom(8).hex()); " + WAITS, pod={"restartPolicy": "Always"})
        )
        pod = await until(cluster.client, "again", is_running)
        first = process_of(cluster, pod)
        heard = await first_line(cluster, "again")
        os.kill(first, signal.SIGKILL)
        pod = await until(cluster.client, "again", lambda pod: is_running(pod) and main_status(pod).restart_count == 1)  # type: ignore[union-attr]
        status = main_status(pod)
        assert status is not None
        assert status.last_state is not None
        assert status.last_state.terminated is not None
        assert status.last_state.terminated.exit_code == 137
        assert await cluster.client.log("again", SPACE, previous=True) == f"{heard}\n"
        assert process_of(cluster, pod) != first


async def test_children_end_with_their_container_even_in_groups_of_their_own() -> None:
    text = lines(
        "import os, subprocess",
        "child = subprocess.Popen(['sleep', '1000'], process_group=0)",
        "print(os.getpgid(child.pid) == child.pid, flush=True)",
        "os._exit(0)",
    )
    async with process_cluster() as cluster:
        assert await output(cluster, script("parent", text)) == ["True"]
        assert not marked((await cluster.client.get(Pod, "parent", SPACE)).metadata.uid)


async def test_the_end_of_the_cluster_is_the_end_of_its_processes() -> None:
    async with process_cluster() as cluster:
        await cluster.client.create(script("web", WAITS))
        pid = process_of(cluster, await until(cluster.client, "web", is_running))
        assert cluster.processes is not None
        folder = cluster.processes._root
        assert folder.stat().st_mode & 0o777 == 0o700
    assert not alive(pid)
    assert not folder.exists()


async def test_a_cluster_that_is_killed_leaves_nothing_behind(tmp_path: Path) -> None:
    program = lines(
        "import asyncio, sys",
        "from tests.sim.processes.support import process_cluster, script, until, is_running, marked",
        "async def main():",
        "    async with process_cluster() as cluster:",
        '        child = \'import subprocess, signal; p = subprocess.Popen(["sleep", "1000"], process_group=0); \'',
        "        await cluster.client.create(script('web', child + 'print(1); signal.pause()'))",
        "        pod = await until(cluster.client, 'web', is_running)",
        "        async for line in cluster.client.log_lines('web', 'default'): break",
        "        run = cluster.processes.runners[pod.metadata.uid].runs['main']",
        "        warden = cluster.processes.spawner._warden",
        "        pids = marked(pod.metadata.uid)",
        "        assert run.process.pid in pids and len(pids) > 1",
        "        print(*pids, warden.pid, cluster.processes._root, flush=True)",
        "        await asyncio.Event().wait()",
        "asyncio.run(main())",
    )
    root = Path(__file__).parents[3]
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, cwd=root, stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    assert child.stdout is not None
    *pids, folder = (await child.stdout.readline()).decode().split()
    ends = [os.pidfd_open(int(pid)) for pid in pids]
    child.kill()
    await child.wait()
    loop = asyncio.get_running_loop()
    for descriptor in ends:
        ended = loop.create_future()
        loop.add_reader(descriptor, lambda ended=ended: ended.done() or ended.set_result(None))
        await ended
        loop.remove_reader(descriptor)
        os.close(descriptor)
    assert await child.stdout.read() == b""
    assert not Path(folder).exists()


# ------------------------------------------------------------------ what cannot be


async def test_a_program_that_is_not_there_is_a_start_error() -> None:
    async with process_cluster(replace(SCRIPT, image="*", command=("no-such-program",))) as cluster:
        await cluster.client.create(script("none", ""))
        end = terminated(await until(cluster.client, "none", is_over))
        assert (end.exit_code, end.reason) == (128, "StartError")
        assert "executable file not found in $PATH" in end.message


async def test_a_missing_config_map_keeps_the_container_waiting_and_its_coming_lets_it_run() -> None:
    wanted = {"name": "COLOUR", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "colour"}}}
    async with process_cluster() as cluster:
        text = "import os; print(os.environ['COLOUR'])"
        await cluster.client.create(script("late", text, env=[wanted]))
        pod = await until(cluster.client, "late", waits_for("CreateContainerConfigError"))
        status = main_status(pod)
        assert status is not None
        assert status.state is not None
        assert status.state.waiting is not None
        assert status.state.waiting.message == 'configmap "settings" not found'
        await cluster.client.create(config_map("settings", colour="green"))
        await until(cluster.client, "late", is_over)
        assert await cluster.client.log("late", SPACE) == "green\n"


async def test_a_host_path_is_refused_unless_a_rule_allows_it(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)  # as root, processes are other users
    (tmp_path / "note").write_text("from the host")
    volumes = {"volumes": [{"name": "host", "hostPath": {"path": str(tmp_path)}}]}
    mount = [{"name": "host", "mountPath": "/host"}]
    text = "import sys; print(open(sys.argv[1] + '/note').read())"
    refused = replace(SCRIPT, image="refused:*", command=(*SCRIPT.command, text, "{mount:/host}"))
    allowed = replace(refused, image="allowed:*", host_paths=(str(tmp_path),))
    async with process_cluster(allowed, refused) as cluster:
        good = script("good", "", image="allowed:1", volumeMounts=mount, pod=volumes)
        assert await output(cluster, good) == ["from the host"]
        await cluster.client.create(script("bad", "", image="refused:1", volumeMounts=mount, pod=volumes))
        message = await said(cluster, "bad", "FailedMount")
        assert "is not allowed; name it in `host_paths`" in message


@pytest.mark.spec("S-81")
@pytest.mark.parametrize("argument", ["x" * 140_000, "a\0b"], ids=["long", "NUL"])
async def test_a_probe_whose_command_cannot_be_started_fails_and_costs_nothing(argument: str) -> None:
    probe = {"exec": {"command": ["true", argument]}, "periodSeconds": 1, "failureThreshold": 1000}
    async with process_cluster() as cluster:
        await cluster.client.create(script("odd", WAITS, readinessProbe=probe))
        assert 'exec: "true": ' in await said(cluster, "odd", "Unhealthy")
        before = open_descriptors()
        await times(cluster, "odd", "Unhealthy", 4)
        assert open_descriptors() <= before + 1, "the watch of this test may be one"


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.spec("S-81")
@pytest.mark.skipif(not POSSIBLE, reason="this machine cannot isolate processes")
async def test_a_process_that_is_not_wanted_any_more_leaves_no_descriptor() -> None:
    spawner, view = Spawner(), Isolation().view("default", PYTHON, [], [])
    before = open_descriptors()
    starting = asyncio.create_task(spawner.start(["sleep", "1000"], dict(os.environ), Path("/"), print, view=view))
    await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    await spawner.aclose()
    async with asyncio.timeout(30):
        while open_descriptors() > before:
            await asyncio.sleep(0)


async def times(cluster: Cluster, pod: str, reason: str, count: int) -> None:
    """Until something has been said of a pod so often."""
    async for event in cluster.client.watch(Event, SPACE):
        item = event.object
        if (item.reason, item.involved_object.name) == (reason, pod) and (item.count or 0) >= count:
            return


@pytest.mark.spec("S-81")
async def test_a_variable_that_no_process_can_have_is_a_start_error() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": SPACE}}
    env = [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "key"}}}]
    async with process_cluster() as cluster:
        await cluster.client.create({**secret, "data": {"key": base64.b64encode(b"a\0b").decode()}})
        await cluster.client.create(script("odd", "", env=env))
        end = terminated(await until(cluster.client, "odd", is_over))
        assert (end.exit_code, end.reason) == (128, "StartError")
        assert "embedded null byte" in end.message


@pytest.mark.spec("S-81")
async def test_a_container_that_cannot_be_prepared_says_so_and_its_pod_goes() -> None:
    volumes = {"volumes": [{"name": "data", "emptyDir": {}}]}
    mount = [{"name": "data", "mountPath": "/data", "subPath": "a\0b"}]
    async with process_cluster() as cluster:
        await cluster.client.create(script("odd", "", volumeMounts=mount, pod=volumes))
        assert "null" in await said(cluster, "odd", "Failed")
        await until(cluster.client, "odd", waits_for("CreateContainerError"))
        await cluster.client.delete(Pod, "odd", SPACE)
        await until_gone(cluster.client, "odd")


async def said(cluster: Cluster, pod: str, reason: str, words: str = "") -> str:
    """The message of an event about a pod, as soon as there is one with this text."""
    async for event in cluster.client.watch(Event, SPACE):
        item = event.object
        if item.reason == reason and item.involved_object.name == pod and words in (item.message or ""):
            return item.message or ""
    raise AssertionError("the watch has ended")


def config_map(name: str, **data: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": SPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


# ------------------------------------------------------------------ what it is given


async def test_the_environment_is_the_containers_and_nothing_of_ours_leaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_OURS", "x")
    monkeypatch.setenv("PASSED", "on purpose")
    rule = replace(SCRIPT, image="*", pass_env=("PASSED",), env={"WHERE": "{pod_ip}:{port:http}", "RULE": "{{}}"})
    env = [
        {"name": "A", "value": "1"},
        {"name": "B", "value": "$(A)+$(POD_IP)"},
        {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "dotted.name", "value": "kept"},
    ]
    text = "import os, json; print(json.dumps(dict(os.environ)))"
    async with process_cluster(rule) as cluster:
        pod = script("env", text, env=env, ports=[{"name": "http", "containerPort": 8080}])
        [line] = await output(cluster, pod)
        result = json.loads(line)
        ip = (await cluster.client.get(Pod, "env", SPACE)).status.pod_ip
    assert result["B"] == f"1+{ip}"
    assert result["NAME"] == result["HOSTNAME"] == "env"
    assert result["dotted.name"] == "kept"
    assert result["WHERE"] == f"{ip}:8080"
    assert (result["RULE"], result["PASSED"]) == ("{}", "on purpose")
    ours = set(os.environ) - {"PATH", "HOME", "LANG", "PASSED", "HOSTNAME"}
    assert not ours & set(result) - {"LC_CTYPE"}


async def test_files_of_a_config_map_follow_it_but_not_through_a_sub_path() -> None:
    rule = replace(
        SCRIPT,
        image="*",
        command=(
            sys.executable,
            "-u",
            "-c",
            lines(
                "import sys, pathlib",
                "whole, part = map(pathlib.Path, sys.argv[1:])",
                "print(whole.read_text(), part.read_text())",
                "while whole.read_text() != 'new': pass",
                "print(whole.read_text(), part.read_text())",
            ),
            "{mount:/etc/app/colour}",
            "{mount:/etc/colour}",
        ),
    )
    mounts = [
        {"name": "conf", "mountPath": "/etc/app"},
        {"name": "conf", "mountPath": "/etc/colour", "subPath": "colour"},
    ]
    pod = script(
        "reader",
        "",
        args=[],
        volumeMounts=mounts,
        pod={"volumes": [{"name": "conf", "configMap": {"name": "settings"}}]},
    )
    async with process_cluster(rule) as cluster:
        await cluster.client.create(config_map("settings", colour="old"))
        await cluster.client.create(pod)
        await until(cluster.client, "reader", is_running)
        async for line in cluster.client.log_lines("reader", SPACE):
            assert line == "old old"
            break
        await cluster.client.replace(config_map("settings", colour="new"))
        await until(cluster.client, "reader", is_over)
        assert (await cluster.client.log("reader", SPACE)).splitlines() == ["old old", "new old"]


async def test_a_claim_is_a_folder_that_outlives_pods_and_goes_with_its_volume(monkeypatch: pytest.MonkeyPatch) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": SPACE},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    rule = replace(SCRIPT, image="*", env={"DATA": "{mount:/data}"})
    volumes = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
    mount = [{"name": "data", "mountPath": "/data"}]
    async with process_cluster(rule) as cluster:
        await cluster.client.create(claim)
        write = "import os; open(os.environ['DATA'] + '/note', 'w').write('kept')"
        read = "import os; print(open(os.environ['DATA'] + '/note').read())"
        assert await output(cluster, script("first", write, volumeMounts=mount, pod=volumes)) == []
        assert await output(cluster, script("second", read, volumeMounts=mount, pod=volumes)) == ["kept"]
        assert cluster.processes is not None
        [folder] = (cluster.processes._root / "volumes").iterdir()
        removed, remove = asyncio.Queue[Path](), disk.remove
        monkeypatch.setattr(disk, "remove", lambda path: removed.put_nowait(path) or remove(path))
        await cluster.client.delete(PersistentVolumeClaim, "data", SPACE)
        await cluster.client.patch(PersistentVolumeClaim, "data", no_finalizers(), SPACE)
        async with aclosing(cluster.client.watch(PersistentVolume)) as volumes:
            async for change in volumes:
                if change.type == "DELETED":
                    break
                if change.object.metadata.deletion_timestamp:
                    await cluster.client.patch(PersistentVolume, change.object.metadata.name, no_finalizers())
        while await removed.get() != folder:
            pass
        assert not folder.exists()


def no_finalizers() -> Any:
    return MergePatch({"metadata": {"finalizers": None}})


async def test_an_operator_in_a_process_is_in_cluster() -> None:
    text = lines(
        "import asyncio, os",
        "from konverge.client import Client, load_config",
        "async def main():",
        "    async with Client.connect(load_config()) as client:",
        "        review = {'apiVersion': 'authentication.k8s.io/v1', 'kind': 'SelfSubjectReview'}",
        "        made = await client.create(review)",
        "        print(made['status']['userInfo']['username'])",
        "asyncio.run(main())",
    )
    async with process_cluster(controllers=True, certificates=make_certificates(("127.0.0.1",))) as cluster:
        await cluster.listen(tls=True)
        for plural, name in (("serviceaccounts", "default"), ("configmaps", "kube-root-ca.crt")):
            async with aclosing(cluster.client.watch(plural, SPACE, field_selector=f"metadata.name={name}")) as made:
                await anext(made)
        [line] = await output(cluster, script("operator", text))
        assert line == "system:serviceaccount:default:default"


# ------------------------------------------------------------------ probes and hooks

SERVES = lines(
    "import http.server, os, sys",
    "class Handler(http.server.BaseHTTPRequestHandler):",
    "    def do_GET(self):",
    "        good = self.path != '/bad' and self.headers.get('X-Key', 'k') == 'k'",
    "        self.send_response(200 if good else 500); self.end_headers()",
    "    def log_message(self, *a): pass",
    "http.server.HTTPServer((os.environ['POD_IP'], 8080), Handler).serve_forever()",
)


@pytest.mark.parametrize(
    "probe",
    [
        {"httpGet": {"path": "/", "port": "http", "httpHeaders": [{"name": "X-Key", "value": "k"}]}},
        {"tcpSocket": {"port": 8080}},
        {"exec": {"command": [sys.executable, "-c", "import os; os.environ['POD_IP']"]}},
    ],
    ids=["http", "tcp", "exec"],
)
async def test_readiness_is_really_probed(probe: dict[str, Any]) -> None:
    ports = [{"name": "http", "containerPort": 8080}]
    probe = {**probe, "periodSeconds": 1, "timeoutSeconds": 5}
    async with process_cluster() as cluster:
        await cluster.client.create(script("web", SERVES, ports=ports, readinessProbe=probe))
        await until(cluster.client, "web", is_ready)


@pytest.mark.parametrize(
    ("probe", "words"),
    [
        ({"httpGet": {"path": "/bad", "port": 8080}}, "HTTP probe failed with statuscode: 500"),
        ({"exec": {"command": [sys.executable, "-c", "raise SystemExit('not well')"]}}, "not well"),
    ],
    ids=["http", "exec"],
)
async def test_a_failed_liveness_restarts_the_process(probe: dict[str, Any], words: str) -> None:
    live = {**probe, "failureThreshold": 1, "periodSeconds": 1, "timeoutSeconds": 5}
    start = {"tcpSocket": {"port": 8080}, "periodSeconds": 1, "failureThreshold": 100}
    async with process_cluster() as cluster:
        pod = script("sick", SERVES, livenessProbe=live, startupProbe=start, pod={"restartPolicy": "Always"})
        await cluster.client.create(pod)
        assert "Liveness probe failed: " in await said(cluster, "sick", "Unhealthy", words)
        result = await until(cluster.client, "sick", lambda pod: restarts(pod) >= 1)
        assert restarts(result) >= 1


def restarts(pod: Pod) -> int:
    status = main_status(pod)
    return status.restart_count if status is not None else 0


async def test_hooks_run_after_the_start_and_before_the_end() -> None:
    def note(text: str) -> dict[str, Any]:
        program = f"import os; open(os.environ['NOTES'], 'a').write({text!r})"
        return {"exec": {"command": [sys.executable, "-c", program]}}

    rule = replace(SCRIPT, image="*", env={"NOTES": "{mount:/notes/all}"})
    lifecycle = {"postStart": note("began;"), "preStop": note("ends;")}
    text = lines(
        "import os, signal, sys",
        "def end(*_): print(open(os.environ['NOTES']).read()); sys.exit(0)",
        "signal.signal(15, end)",
        "signal.pause()",
    )
    volumes = {"volumes": [{"name": "notes", "emptyDir": {}}]}
    mounts = [{"name": "notes", "mountPath": "/notes"}]
    async with process_cluster(rule) as cluster:
        await cluster.client.create(script("hooked", text, lifecycle=lifecycle, volumeMounts=mounts, pod=volumes))
        await until(cluster.client, "hooked", is_running)
        heard = asyncio.create_task(first_line(cluster, "hooked"))
        await cluster.client.delete(Pod, "hooked", SPACE)
        assert await heard == "began;ends;"
        await until_gone(cluster.client, "hooked")


async def first_line(cluster: Cluster, name: str) -> str:
    async for line in cluster.client.log_lines(name, SPACE):
        return line
    return ""


async def test_init_containers_and_sidecars_are_processes_too() -> None:
    def item(name: str, text: str, **more: Any) -> dict[str, Any]:
        return {"name": name, "image": "python:3", "args": [text], **more}

    inits = [item("setup", "print('set up')"), item("proxy", WAITS, restartPolicy="Always")]
    async with process_cluster() as cluster:
        await cluster.client.create(script("work", "print('done')", pod={"initContainers": inits}))
        pod = await until(cluster.client, "work", is_over)
        assert pod.status.phase == "Succeeded"
        assert await cluster.client.log("work", SPACE, container="setup") == "set up\n"
        ends = {
            init_container_statuse.name: init_container_statuse.state.terminated
            for init_container_statuse in pod.status.init_container_statuses
            if init_container_statuse.state
        }
        assert ends["proxy"] is not None
        assert ends["proxy"].exit_code == 143


async def test_the_last_words_of_a_container_are_its_message() -> None:
    rule = replace(SCRIPT, image="*", env={"LAST_WORDS": "{termination_log}"})
    text = "import os; open(os.environ['LAST_WORDS'], 'w').write('farewell'); raise SystemExit(2)"
    async with process_cluster(rule) as cluster:
        await cluster.client.create(script("file", text))
        assert terminated(await until(cluster.client, "file", is_over)).message == "farewell"
        policy = {"terminationMessagePolicy": "FallbackToLogsOnError"}
        await cluster.client.create(script("log", "raise SystemExit('from the log')", **policy))
        assert terminated(await until(cluster.client, "log", is_over)).message == "from the log\n"


@pytest.mark.spec("S-57")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("print('DONE', end='')", "DONE"),
        ("[print('line', n) for n in range(100)]", "".join(f"line {n}\n" for n in range(20, 100))),
        (
            "[print(f'{n:03}' + 'x' * 37) for n in range(100)]",
            "".join(f"{n:03}{'x' * 37}\n" for n in range(100))[-2048:],
        ),
    ],
    ids=["no line's end", "80 lines", "2048 bytes"],
)
async def test_the_end_of_the_log_speaks_for_a_failure(text: str, message: str) -> None:
    policy: dict[str, Any] = {"terminationMessagePolicy": "FallbackToLogsOnError"}
    async with process_cluster() as cluster:
        await cluster.client.create(script("log", f"{text}; raise SystemExit(1)", **policy))
        assert terminated(await until(cluster.client, "log", is_over)).message == message
        await cluster.client.create(script("fine", text, **policy))
        assert terminated(await until(cluster.client, "fine", is_over)).message is None


@pytest.mark.spec("S-57")
async def test_of_a_long_message_the_end_is_kept() -> None:
    rule = replace(SCRIPT, image="*", env={"LAST_WORDS": "{termination_log}"})
    text = "import os; open(os.environ['LAST_WORDS'], 'w').write('a' * 1000 + 'b' * 4096)"
    others = [{"name": f"other{number}", "image": "python:3", "args": ["pass"]} for number in range(3)]
    async with process_cluster(rule) as cluster:
        await cluster.client.create(script("alone", text))
        assert terminated(await until(cluster.client, "alone", is_over)).message == "b" * 4096
        crowd = script("crowd", text)
        crowd.spec.containers.extend(from_dict(Container, other) for other in others)
        await cluster.client.create(crowd)
        assert terminated(await until(cluster.client, "crowd", is_over)).message == "b" * (12 * 1024 // 4)


async def test_a_deadline_ends_a_process() -> None:
    async with process_cluster() as cluster:
        await cluster.client.create(script("slow", WAITS, pod={"activeDeadlineSeconds": 1}))
        pod = await until(cluster.client, "slow", is_over)
        assert pod.status.reason == "DeadlineExceeded"


# ------------------------------------------------------------------ the state is kept


async def test_after_a_restart_of_the_cluster_processes_run_again_with_their_files(tmp_path: Path) -> None:
    rule = replace(SCRIPT, image="*", env={"COUNT": "{mount:/data/count}"})
    text = lines(
        "import os, signal",
        "with open(os.environ['COUNT'], 'a') as file: file.write('x')",
        "print(open(os.environ['COUNT']).read())",
        "signal.pause()",
    )
    volumes = {"volumes": [{"name": "data", "emptyDir": {}}], "restartPolicy": "Always"}
    mounts = [{"name": "data", "mountPath": "/data"}]
    async with process_cluster(rule, data_dir=tmp_path) as cluster:
        await cluster.client.create(script("kept", text, volumeMounts=mounts, pod=volumes))
        before = await until(cluster.client, "kept", is_running)
        assert await first_line(cluster, "kept") == "x"
    async with process_cluster(rule, data_dir=tmp_path) as cluster:
        pod = await until(cluster.client, "kept", lambda pod: is_running(pod) and restarts(pod) == 1)
        assert pod.status.pod_ip == before.status.pod_ip
        assert await first_line(cluster, "kept") == "xx"
