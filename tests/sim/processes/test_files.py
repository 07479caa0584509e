"""What a process is given, without any process: rules, templates, environment, files, names, logs."""

from __future__ import annotations

import asyncio
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.objects.codec import from_dict
from konverge.objects.kinds.core_v1 import Container, Pod, Service
from konverge.objects.kinds.discovery_v1 import EndpointSlice
from konverge.objects.quantity import Quantity
from konverge.sim.processes import (
    ProcessRule,
    RuleError,
    access,
    disk,
    environment,
    plan,
    read_rules,
)
from konverge.sim.processes.disk import File, MountError
from konverge.sim.processes.environment import ConfigError, Self, container_env, service_env
from konverge.sim.processes.logfile import LINE, LogFile, LogOptions, entries, producer, read_options
from konverge.sim.processes.process import StartError, resolved
from konverge.sim.processes.rules import find, load

pytestmark = pytest.mark.spec("S-16")


def container(**fields: Any) -> Container:
    return from_dict(Container, {"name": "main", "image": "app:1", **fields})


def itself(**spec: Any) -> Self:
    meta = {"name": "web-0", "namespace": "shop", "uid": "u1", "labels": {"b": "2", "a": 'x"y'}}
    whole = {"containers": [{"name": "main", "image": "app:1", **spec.pop("main", {})}], "nodeName": "node-1", **spec}
    pod = from_dict(Pod, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": whole})
    return Self(pod, "127.1.0.5", "127.0.1.0", {"cpu": Quantity("4"), "memory": Quantity("8Gi")})


# ------------------------------------------------------------------ rules


def test_the_first_rule_that_matches_counts() -> None:
    rules = read_rules(
        [
            {"image": "nacos/*:v3*", "command": ["new"], "namespace": "prod"},
            {"image": "nacos/*", "command": ["old", 8848], "env": {"A": 1}, "translate": True},
        ]
    )
    assert find(rules, "prod", "c", "nacos/nacos-server:v3.1") == rules[0]
    result = find(rules, "test", "c", "nacos/nacos-server:v3.1")
    assert result == ProcessRule(image="nacos/*", command=("old", "8848"), env={"A": "1"}, translate=True)
    assert find(rules, "test", "c", "mysql:8") is None


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({}, "needs `image`"),
        ({"image": "a"}, "needs a `command`"),
        ({"image": "a", "command": "sh -c x"}, "is a list, one element per argument"),
        ({"image": "a", "command": ["x"], "commands": 1}, "may have"),
        ({"image": "a", "command": ["{pod-ip}"]}, "is no template"),
        ({"image": "a", "command": ["{port}"]}, "is no template"),
        ({"image": "a", "command": ["x"], "env": {"A": "{"}}, "write {{ for a brace"),
        ({"image": "a", "command": ["x"], "container_args": "maybe"}, "it may be refuse, append, ignore"),
        ({"image": "a", "command": ["x"], "stop_signal": "SIGNONE"}, "is no signal"),
        ({"image": "a", "command": ["x"], "translate": "yes"}, "is true or false"),
    ],
)
def test_a_rule_that_cannot_be_followed_says_why(rule: dict[str, Any], message: str) -> None:
    with pytest.raises(RuleError) as caught:
        read_rules([rule])
    assert message in str(caught.value)


def test_a_file_of_rules(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text("- {image: 'a:*', command: [run, '{pod_ip}']}\n")
    assert load(path)[0].command == ("run", "{pod_ip}")
    path.write_text("{")
    with pytest.raises(RuleError, match="is not YAML"):
        load(path)
    path.write_text("image: a")
    with pytest.raises(RuleError, match="a rules file is a list"):
        load(path)


@pytest.mark.parametrize(
    ("rule", "fields", "expected"),
    [
        ({}, {}, ["run", "127.1.0.5"]),
        ({"container_args": "append"}, {"args": ["$(WHO)"], "command": ["entry"]}, ["run", "127.1.0.5", "me"]),
        ({"container_args": "ignore"}, {"args": ["a"]}, ["run", "127.1.0.5"]),
        ({"command": ("run", "{args}", "last")}, {"args": ["a", "b"]}, ["run", "a", "b", "last"]),
        (
            {"container_command": "append", "container_args": "append"},
            {"command": ["c"], "args": ["a"]},
            ["run", "127.1.0.5", "c", "a"],
        ),
        ({"container_command": "replace"}, {"command": ["c", "$(WHO)"], "args": ["a"]}, ["c", "me", "a"]),
        ({"container_command": "replace"}, {"args": ["a"]}, ["run", "127.1.0.5", "a"]),
    ],
)
def test_the_command_is_the_rules_and_the_containers(
    tmp_path: Path, rule: dict[str, Any], fields: dict[str, Any], expected: list[str]
) -> None:
    spec = container(**fields)
    made = disk.prepare(tmp_path / "c", spec, {}, {})
    place = plan.Place(tmp_path, tmp_path / "hosts", tmp_path / "kubeconfig")
    rule = {"command": ("run", "{pod_ip}"), **rule}
    result = plan.make(spec, ProcessRule(image="*", **rule), itself(), made, {"WHO": "me"}, place)
    assert result.command == expected


def test_a_port_that_the_container_lacks_is_named(tmp_path: Path) -> None:
    spec = container(ports=[{"name": "grpc", "containerPort": 9000}])
    place = plan.Place(tmp_path, tmp_path / "hosts", tmp_path / "kubeconfig")
    rule = ProcessRule(image="*", command=("run", "{port:http}"))
    with pytest.raises(ConfigError, match="asks for port 'http'; the container has grpc"):
        plan.make(spec, rule, itself(), disk.prepare(tmp_path / "c", spec, {}, {}), {}, place)


def test_programs_are_found_by_their_own_path(tmp_path: Path) -> None:
    program = tmp_path / "tool"
    program.write_text("")
    for command in (["tool"], ["./tool"], []):
        with pytest.raises(StartError):
            resolved(command, {"PATH": str(tmp_path)}, tmp_path)
    program.chmod(0o700)
    assert resolved(["tool"], {"PATH": str(tmp_path)}, Path("/")) == str(program)
    assert resolved(["./tool"], {}, tmp_path) == str(program)


# ------------------------------------------------------------------ environment


class Known:
    def __init__(self, maps: dict[str, dict[str, str]], secrets: dict[str, dict[str, bytes]]) -> None:
        self._maps = maps
        self._secrets = secrets

    async def config_map(self, name: str) -> dict[str, str] | None:
        return self._maps.get(name)

    async def secret(self, name: str) -> dict[str, bytes] | None:
        return self._secrets.get(name)


KNOWN = Known({"conf": {"A": "1"}, "odd": {"data-1": "x"}}, {"key": {"B": b"2"}})


async def test_variables_from_everywhere() -> None:
    spec = container(
        envFrom=[
            {"prefix": "P_", "configMapRef": {"name": "conf"}},
            {"secretRef": {"name": "key"}},
            {"secretRef": {"name": "none", "optional": True}},
        ],
        env=[
            {"name": "SUM", "value": "$(P_A)+$(B)+$(LATER)+$$(B)"},
            {"name": "LATER", "value": "x"},
            {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['b']"}}},
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
            {"name": "MEMORY", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
            {"name": "FROM_MAP", "valueFrom": {"configMapKeyRef": {"name": "conf", "key": "A"}}},
            {"name": "MISSING", "valueFrom": {"secretKeyRef": {"name": "key", "key": "no", "optional": True}}},
        ],
    )
    limited = itself(main={"resources": {"limits": {"cpu": "1500m"}}})
    result = await container_env(spec, limited, KNOWN, {"SERVICE": "s"})
    assert result == {
        "SERVICE": "s", "P_A": "1", "B": "2", "SUM": "1+2+$(LATER)+$(B)", "LATER": "x", "POD": "2", "CPU": "1500",
        "MEMORY": "8192", "FROM_MAP": "1",
    }  # fmt: skip


@pytest.mark.spec("S-57")
@pytest.mark.parametrize("prefix", ["", "1-", "$_-", "p_"])
async def test_names_with_a_prefix_are_whatever_the_api_lets_through(prefix: str) -> None:
    spec = container(envFrom=[{"prefix": prefix, "configMapRef": {"name": "odd"}}])
    assert await container_env(spec, itself(), KNOWN, {}) == {f"{prefix}data-1": "x"}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"envFrom": [{"configMapRef": {"name": "no"}}]}, 'configmap "no" not found'),
        ({"env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "no", "key": "k"}}}]}, 'secret "no" not found'),
        (
            {"env": [{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "conf", "key": "k"}}}]},
            "couldn't find key k in ConfigMap shop/conf",
        ),
    ],
)
async def test_a_missing_reference_gives_the_kubelets_message(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        await container_env(container(**fields), itself(), KNOWN, {})


@given(st.text("$()AB x"), st.dictionaries(st.sampled_from(["A", "B", "AB"]), st.text("xy")))
def test_expansion_leaves_what_it_does_not_know(text: str, known: dict[str, str]) -> None:
    result = environment.expand(text, known)
    if "$" not in text:
        assert result == text
    if not known and "$$" not in text:
        assert result == text


def test_services_are_told_as_links() -> None:
    item = service("my-web", "shop", ports=[{"name": "http-alt", "port": 80}, {"port": 53, "protocol": "UDP"}])
    headless = service("quiet", "shop", clusterIP="None", ports=[{"port": 1}])
    assert service_env([item, headless]) == {
        "MY_WEB_SERVICE_HOST": "10.96.0.7",
        "MY_WEB_SERVICE_PORT": "80",
        "MY_WEB_SERVICE_PORT_HTTP_ALT": "80",
        "MY_WEB_PORT": "tcp://10.96.0.7:80",
        "MY_WEB_PORT_80_TCP": "tcp://10.96.0.7:80",
        "MY_WEB_PORT_80_TCP_PROTO": "tcp",
        "MY_WEB_PORT_80_TCP_PORT": "80",
        "MY_WEB_PORT_80_TCP_ADDR": "10.96.0.7",
        "MY_WEB_PORT_53_UDP": "udp://10.96.0.7:53",
        "MY_WEB_PORT_53_UDP_PROTO": "udp",
        "MY_WEB_PORT_53_UDP_PORT": "53",
        "MY_WEB_PORT_53_UDP_ADDR": "10.96.0.7",
    }


def service(name: str, namespace: str, **spec: Any) -> Service:
    meta = {"name": name, "namespace": namespace}
    whole = {"clusterIP": "10.96.0.7", **spec}
    return from_dict(Service, {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": whole})


# ------------------------------------------------------------------ names


def test_the_hosts_file_has_pods_by_name_and_services_by_their_endpoints() -> None:
    me = itself(hostname="web-0", subdomain="webs")
    other = from_dict(
        Pod,
        {
            "metadata": {"name": "db-0", "namespace": "data", "uid": "u2"},
            "spec": {"hostname": "db-0", "subdomain": "dbs", "containers": []},
            "status": {"podIP": "127.1.0.9", "phase": "Pending"},
        },
    )
    endpoints = from_dict(
        EndpointSlice,
        {
            "metadata": {"name": "s", "namespace": "shop", "labels": {"kubernetes.io/service-name": "api"}},
            "addressType": "IPv4",
            "endpoints": [
                {"addresses": ["127.1.0.3"], "conditions": {"ready": True}},
                {"addresses": ["127.1.0.4"], "conditions": {"ready": False}},
            ],
        },
    )
    assert access.hosts_file(me, [other], [service("api", "shop")], [endpoints]).splitlines()[7:] == [
        "127.1.0.5\tweb-0.webs.shop.svc.cluster.local\tweb-0",
        "",
        "# Pods and services of the cluster, in place of its DNS.",
        "127.1.0.9 db-0.dbs.data.svc.cluster.local db-0.dbs.data.svc db-0.dbs.data",
        "127.1.0.3 api.shop.svc.cluster.local api.shop.svc api.shop api",
    ]


@pytest.mark.spec("S-57")
def test_the_hosts_file_begins_as_a_kubelet_writes_it() -> None:
    aliases = [{"ip": "123.45.67.89", "hostnames": ["foo", "bar"]}, {"ip": "::7", "hostnames": ["seven"]}]
    assert access.hosts_file(itself(hostname="web-0", hostAliases=aliases), [], [], []) == (
        "# Kubernetes-managed hosts file.\n"
        "127.0.0.1\tlocalhost\n"
        "::1\tlocalhost ip6-localhost ip6-loopback\n"
        "fe00::0\tip6-localnet\n"
        "fe00::0\tip6-mcastprefix\n"
        "fe00::1\tip6-allnodes\n"
        "fe00::2\tip6-allrouters\n"
        "127.1.0.5\tweb-0\n"
        "\n"
        "# Entries added by HostAliases.\n"
        "123.45.67.89\tfoo\tbar\n"
        "::7\tseven\n"
    )
    first, *_ = access.hosts_file(itself(hostNetwork=True), [], [], []).splitlines()
    assert first == "# Kubernetes-managed hosts file (host network)."


# ------------------------------------------------------------------ files


def shown(folder: Path) -> dict[str, bytes]:
    result = {}
    for entry in folder.iterdir():
        if not entry.name.startswith(".."):
            whole = entry.resolve()
            for path in [whole, *whole.rglob("*")] if whole.is_dir() else [whole]:
                if path.is_file():
                    result[(Path(entry.name) / path.relative_to(whole)).as_posix()] = path.read_bytes()
    return result


names = st.sampled_from(["a", "b", "dir/a", "dir/sub/b", "other/a"])


@given(st.lists(st.dictionaries(names, st.binary(max_size=8)), min_size=1, max_size=5))
def test_a_volume_always_shows_just_the_last_files(
    tmp_path_factory: pytest.TempPathFactory, states: list[dict[str, bytes]]
) -> None:
    folder = tmp_path_factory.mktemp("volume") / "v"
    before: dict[str, bytes] | None = None
    for state in states:
        changed = disk.write_volume(folder, {path: File(data) for path, data in state.items()})
        assert changed is (state != before)
        assert shown(folder) == state
        before = state
    hidden = [entry.name for entry in folder.iterdir() if entry.name.startswith("..")]
    assert len(hidden) == 2


def test_files_are_the_owners_alone(tmp_path: Path) -> None:
    disk.write_volume(tmp_path / "v", {"secret": File(b"x", 0o644), "run": File(b"x", 0o755), "ro": File(b"x", 0o444)})
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "v").iterdir() if path.is_file()}
    assert modes == {"secret": 0o600, "run": 0o700, "ro": 0o400}
    assert (tmp_path / "v").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("path", ["../x", "/x", "..data/x", "a/../../x", ""])
def test_a_file_stays_in_its_volume(tmp_path: Path, path: str) -> None:
    with pytest.raises(ValueError, match="is no path within a volume"):
        disk.write_volume(tmp_path / "v", {path: File(b"")})


def test_mount_paths_have_stand_ins(tmp_path: Path) -> None:
    conf, data = tmp_path / "conf", tmp_path / "data"
    disk.write_volume(conf, {"app.properties": File(b"a=1")})
    data.mkdir()
    spec = container(
        volumeMounts=[
            {"name": "conf", "mountPath": "/etc/app"},
            {"name": "conf", "mountPath": "/home/app/conf/app.properties", "subPath": "app.properties"},
            {"name": "data", "mountPath": "/data", "subPathExpr": "$(POD)/x"},
        ]
    )
    made = disk.prepare(tmp_path / "c", spec, {"conf": (conf, True), "data": (data, False)}, {"POD": "web-0"})
    assert made.locate("/etc/app/app.properties").read_bytes() == b"a=1"
    assert made.locate("/data") == data / "web-0" / "x"
    assert (made.root / "data").resolve() == (data / "web-0" / "x").resolve()
    assert made.locate("/tmp/x") == made.root / "tmp" / "x"
    part = made.locate("/home/app/conf/app.properties")
    disk.write_volume(conf, {"app.properties": File(b"a=2")})
    assert part.read_bytes() == b"a=1"
    assert made.locate("/etc/app/app.properties").read_bytes() == b"a=2"
    assert made.translate("--conf=/etc/app/x /database /data") == f"--conf={conf}/x /database {data}/web-0/x"


def test_a_sub_path_does_not_leave_its_volume(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "link").symlink_to("/etc")
    spec = container(volumeMounts=[{"name": "data", "mountPath": "/data", "subPath": "link"}])
    with pytest.raises(MountError):
        disk.prepare(tmp_path / "c", spec, {"data": (data, False)}, {})


@pytest.mark.spec("S-57")
@pytest.mark.parametrize(
    ("mount", "message"),
    [
        ({"subPath": "../x"}, "unable to provision SubPath `../x`: must not contain '..'"),
        ({"subPathExpr": "$(UP)"}, "unable to provision SubPath `..`: must not contain '..'"),
        ({"subPathExpr": "$(TMP)"}, "error SubPath `/tmp` must not be an absolute path"),
        ({"subPathExpr": "$(NO)-$(EMPTY)-$(UP)"}, "missing value for EMPTY, NO"),
    ],
)
def test_a_sub_path_is_refused_as_a_kubelet_does(tmp_path: Path, mount: dict[str, str], message: str) -> None:
    (tmp_path / "data").mkdir()
    spec = container(volumeMounts=[{"name": "data", "mountPath": "/data", **mount}])
    known = {"UP": "..", "TMP": "/tmp", "EMPTY": ""}
    with pytest.raises(ConfigError) as error:
        disk.prepare(tmp_path / "c", spec, {"data": (tmp_path / "data", False)}, known)
    assert str(error.value) == message


# ------------------------------------------------------------------ logs


class Heard:
    """A sink that remembers."""

    def __init__(self) -> None:
        self.data = b""
        self.buffered = 0
        self.closed = False

    def write(self, data: bytes) -> None:
        self.data += data

    async def drain(self) -> None:
        await asyncio.sleep(0)


async def heard(log: LogFile, options: LogOptions) -> bytes:
    sink = Heard()
    await producer(log, options)(sink)
    return sink.data


@pytest.mark.parametrize(("seconds", "since"), [(60, b"2026-11-19T23:59:00"), (10**12, b"1904-01-25")])
def test_the_log_of_any_number_of_seconds_can_be_asked_for(
    seconds: int, since: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond 64 bits of nanoseconds it wraps around, as in Go."""
    monkeypatch.setattr("konverge.clock.utc_now", lambda: datetime(2026, 11, 20, tzinfo=UTC))
    assert read_options({"sinceSeconds": [str(seconds)]}).since.startswith(since)


@given(st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=60)), max_size=20))
async def test_what_was_said_is_what_is_read(said: list[tuple[int, bytes]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = LogFile(Path(folder) / "1.log")
        log.open()
        for fd, data in said:
            log.write(fd, data)
        log.end()
        for fd, stream in ((1, b"stdout"), (2, b"stderr")):
            whole = b"".join(data for number, data in said if number == fd)
            assert await heard(log, LogOptions(stream=stream)) == whole
        again = LogFile(Path(folder) / "1.log")
        assert await heard(again, LogOptions()) == await heard(log, LogOptions())


async def test_a_log_is_bounded_and_a_follower_survives_its_rotation(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "1.log", size=1000, files=3)
    log.open()
    follower = asyncio.create_task(heard(log, LogOptions(follow=True)))
    for number in range(200):
        log.write(1, b"line %d\n" % number)
        await asyncio.sleep(0)
    log.end()
    lines = (await follower).splitlines()
    assert lines == [b"line %d" % number for number in range(200)]
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 3 * 1100
    assert len(list(tmp_path.iterdir())) == 3
    assert (await heard(log, LogOptions(tail=2))).splitlines() == [b"line 198", b"line 199"]
    assert (await heard(log, LogOptions(tail=30))).splitlines() == lines[-30:]
    kept = (await heard(log, LogOptions())).splitlines()
    assert kept == lines[-len(kept) :]


async def test_a_line_without_end_is_kept_in_parts(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "1.log")
    log.open()
    log.write(1, b"x" * (2 * LINE + 5) + b"\nnext")
    log.end()
    result = list(entries((tmp_path / "1.log").read_bytes()))
    assert [(len(item.text), item.whole) for item in result] == [(LINE, False), (LINE, False), (5, True), (4, False)]
    assert await heard(log, LogOptions()) == b"x" * (2 * LINE + 5) + b"\nnext"


async def test_ways_to_ask(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "1.log")
    log.open()
    log.write(1, b"one\ntwo\n")
    assert await heard(log, LogOptions(limit=5)) == b"one\nt"
    assert await heard(log, LogOptions(tail=0)) == b""
    assert await heard(log, LogOptions(since=b"9999")) == b""
    stamped = (await heard(log, LogOptions(timestamps=True))).split()
    assert stamped[1] == b"one"
    assert stamped[0].endswith(b"Z")
    log.end()
