"""Ways to bring one's own code to this machine by a pod, each tried by an account that may only create pods and
ConfigMaps. The code of an attack leaves a file; a container that is refused waits, and says what of the rule to change.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from konverge.client import Forbidden
from konverge.objects.codec import from_dict
from konverge.objects.kinds.core_v1 import Pod, Secret
from konverge.sim.processes import ProcessRule
from konverge.sim.processes.permitted import SERVICE_ACCOUNT
from tests.sim.conftest import SPACE
from tests.sim.processes.attackers import SRV, WEB, attacker, code
from tests.sim.processes.support import (
    SCRIPT,
    is_over,
    is_ready,
    main_status,
    process_cluster,
    script,
    until,
    waits_for,
)

pytestmark = [pytest.mark.spec("T-14"), pytest.mark.long]

REFUSED = waits_for("CreateContainerError")
BELOW_ACCOUNT = {"name": "code", "mountPath": f"{SERVICE_ACCOUNT}/http"}


def web(*, mounts: list[dict[str, Any]] | None = None, token: bool | None = None, **container: Any) -> Pod:
    main = {
        "name": "main",
        "image": "web:1",
        "ports": [{"name": "http", "containerPort": 8080}],
        "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
        "volumeMounts": [SRV] if mounts is None else mounts,
        **container,
    }
    volumes = [{"name": "code", "configMap": {"name": "code", "defaultMode": 0o755}}]
    meta = {"name": "web", "namespace": SPACE}
    spec = {"containers": [main], "volumes": volumes, "restartPolicy": "Never", "automountServiceAccountToken": token}
    return from_dict(Pod, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})


async def attacked(tmp_path: Path, pod: Pod, holds: Any = REFUSED, rule: ProcessRule = WEB) -> str:
    """Create modules and the pod, and wait; the message with which the container waits."""
    proof = tmp_path / "proof"
    evil = f"open({str(proof)!r}, 'w').close()"
    async with process_cluster(rule) as cluster, attacker(cluster) as client:
        with pytest.raises(Forbidden):
            await client.list(Secret, SPACE)
        await client.create(code("code", http=evil, __init__=evil, server=evil, sitecustomize=evil))
        await client.create(pod)
        seen = await until(cluster.client, "web", lambda pod: holds(pod) or is_over(pod) or is_ready(pod))
        status = main_status(seen)
        assert not proof.exists(), "code of the attacker has run"
        assert holds(seen), status
        state = status.state if status is not None else None
        return (state.waiting.message or "") if state is not None and state.waiting is not None else ""


# ------------------------------------------------------------------ files


@pytest.mark.parametrize(
    ("pod", "member"),
    [
        (web(workingDir="/srv"), "`workdir`"),
        (web(workingDir="/x/../srv/"), "`workdir`"),
        (web(workingDir="/srv", mounts=[{"name": "code", "mountPath": "/srv/http"}]), "`workdir`"),
        (web(workingDir="/srv", mounts=[], terminationMessagePath="/srv/http.py"), "`workdir`"),
        (web(workingDir=SERVICE_ACCOUNT, mounts=[BELOW_ACCOUNT], token=False), f"{SERVICE_ACCOUNT}/http in `mounts`"),
        (web(mounts=[SRV, {"name": "code", "mountPath": "/http"}]), "/http in `mounts`"),
        (web(mounts=[SRV, {"name": "code", "mountPath": "/srv/../http"}]), "/http in `mounts`"),
        (web(mounts=[SRV, {"name": "code", "mountPath": "/http.py", "subPath": "http.py"}]), "/http.py in `mounts`"),
        (web(mounts=[SRV, {"name": "code", "mountPath": "/"}]), "/ in `mounts`"),
        (web(terminationMessagePath="/http.py"), "/http.py in `mounts`"),
    ],
    ids=["workingDir", "spelled", "below", "message", "account", "package", "dots", "module", "root", "termination"],
)
async def test_modules_are_not_put_where_the_command_looks_for_them(tmp_path: Path, pod: Pod, member: str) -> None:
    assert member in await attacked(tmp_path, pod)


async def test_a_working_folder_does_not_leave_its_root(tmp_path: Path) -> None:
    await attacked(tmp_path, web(workingDir="/../../../volumes/code"), is_ready)


@pytest.mark.parametrize("field", ["mountPath", "terminationMessagePath"])
async def test_no_link_is_put_outside_of_the_containers_root(tmp_path: Path, field: str) -> None:
    planted = tmp_path / "planted"
    path = "/.." * 12 + str(planted)
    mount = {"name": "code", "mountPath": path, "subPath": "http.py"}
    pod = web(mounts=[SRV, mount]) if field == "mountPath" else web(terminationMessagePath=path)
    await attacked(tmp_path, pod, is_ready, replace(WEB, mounts=("*",)))
    assert not os.path.lexists(planted)


async def test_the_message_of_an_end_is_not_read_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of the administrator")
    rule = replace(SCRIPT, image="*", env={"LOG": "{termination_log}"})
    text = f"import os; os.unlink(os.environ['LOG']); os.symlink({str(tmp_path / 'secret')!r}, os.environ['LOG'])"
    async with process_cluster(rule) as cluster:
        await cluster.client.create(script("curious", text))
        status = main_status(await until(cluster.client, "curious", is_over))
        assert status is not None
        assert status.state is not None
        assert status.state.terminated is not None
        assert not status.state.terminated.message


# ------------------------------------------------------------------ variables


@pytest.mark.parametrize(
    "extra",
    [
        {"env": [{"name": "PYTHONPATH", "value": "../../../volumes/code"}]},
        {"env": [{"name": "WHERE", "value": "../.."}, {"name": "PYTHONPATH", "value": "$(WHERE)/../volumes/code"}]},
        {"envFrom": [{"configMapRef": {"name": "variables"}}]},
        {"envFrom": [{"prefix": "PYTHON", "configMapRef": {"name": "variables"}}]},
        {"env": [{"name": "PYTHONPATH", "valueFrom": {"configMapKeyRef": {"name": "variables", "key": "PYTHONPATH"}}}]},
    ],
    ids=["value", "expanded", "envFrom", "prefix", "valueFrom"],
)
async def test_variables_that_bring_code_are_refused(tmp_path: Path, extra: dict[str, Any]) -> None:
    proof = tmp_path / "proof"
    variables = code("variables")
    variables["data"] = dict.fromkeys(("PYTHONPATH", "PATH"), "../../../volumes/code")
    async with process_cluster(WEB) as cluster, attacker(cluster) as client:
        await client.create(code("code", sitecustomize=f"open({str(proof)!r}, 'w').close()"))
        await client.create(variables)
        await client.create(web(**extra))
        seen = await until(cluster.client, "web", lambda pod: REFUSED(pod) or is_ready(pod) or is_over(pod))
        assert not proof.exists(), "code of the attacker has run"
        assert REFUSED(seen)
        status = main_status(seen)
        assert status is not None
        assert status.state is not None
        assert status.state.waiting is not None
        assert "in `container_env`" in (status.state.waiting.message or "")


# ------------------------------------------------------------------ commands and arguments

_PROBE = {"exec": {"command": ["sh", "-c", "touch $PROOF"]}}


@pytest.mark.parametrize(
    "extra",
    [
        {"readinessProbe": _PROBE},
        {"livenessProbe": _PROBE},
        {"startupProbe": _PROBE},
        {"lifecycle": {"postStart": _PROBE}},
        {"lifecycle": {"preStop": _PROBE}},
    ],
    ids=lambda extra: next(iter(extra.get("lifecycle", extra))),
)
async def test_commands_of_probes_and_hooks_do_not_run(tmp_path: Path, extra: dict[str, Any]) -> None:
    env = [{"name": "PROOF", "value": str(tmp_path / "proof")}]
    assert "`container_exec: true`" in await attacked(tmp_path, web(env=env, **extra))


async def test_arguments_are_refused_unless_the_rule_says_what_becomes_of_them(tmp_path: Path) -> None:
    assert "`container_args`" in await attacked(tmp_path, web(args=["--directory", "/"]))


# ------------------------------------------------------------------ folders of this machine


async def test_a_host_path_is_for_the_containers_of_the_rule_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "note").write_text("of the host")
    owner = replace(SCRIPT, image="owner:*", host_paths=(str(tmp_path),))
    other = replace(SCRIPT, image="other:*")
    volumes = [{"name": "host", "hostPath": {"path": str(tmp_path)}}]
    beside = {"name": "beside", "image": "owner:1", "args": ["pass"]}
    main: dict[str, Any] = {"name": "main", "image": "other:1", "args": ["pass"]}
    main["volumeMounts"] = [{"name": "host", "mountPath": "/x"}]
    pod = script("web", "", pod={"containers": [main, beside], "volumes": volumes})
    async with process_cluster(owner, other) as cluster, attacker(cluster) as client:
        await client.create(pod)
        seen = await until(cluster.client, "web", lambda pod: REFUSED(pod) or is_over(pod))
        assert REFUSED(seen)
