"""Specs to try: good ones, bad ones with the path and the message of the refusal, and random ones of both sorts."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from konverge.objects import from_dict
from konverge.operators.wukong.resource import Wukong

Spec = dict[str, Any]

DISK: Spec = {"name": "system", "size": "10Gi"}
SMALL: Spec = {"cpu": 2, "memory": "2Gi", "disks": [DISK]}
USER: Spec = {"name": "ubuntu"}
STATIC: Spec = {"mode": "static", "address": "192.168.0.200/24"}


def spec(**more: Any) -> Spec:
    return {**SMALL, **more}


def disk(**more: Any) -> Spec:
    return spec(disks=[{**DISK, **more}])


def net(**more: Any) -> Spec:
    return spec(networks=[{"name": "lan", "type": "bridge", **more}])


def wukong(given: Spec | None = None, *, name: str = "web", uid: str = "4711") -> Wukong:
    """As the operator would read it."""
    metadata = {"name": name, "namespace": "team-a", "uid": uid}
    return from_dict(Wukong, {"metadata": metadata, "spec": SMALL if given is None else given})


ORIGINAL: dict[str, Spec] = {
    "its smallest sample": {
        "cpu": 2,
        "memory": "2Gi",
        "networks": [{"name": "default", "type": "bridge", "ipConfig": {"mode": "dhcp"}}],
        "disks": [{"name": "system", "size": "10Gi", "storageClassName": "local-path", "boot": True}],
    },
    "its sample with two networks": {
        "cpu": 2,
        "memory": "4Gi",
        "disks": [
            {
                "name": "system",
                "size": "5Gi",
                "storageClassName": "longhorn",
                "boot": True,
                "image": "http://192.168.1.141:8080/images/noble.img",
            },
            {"name": "data", "size": "10Gi", "storageClassName": "longhorn", "boot": False},
        ],
        "networks": [
            {"name": "default"},
            {
                "name": "external",
                "type": "bridge",
                "bridgeName": "br-external",
                "physicalInterface": "ens192",
                "ipConfig": {
                    "mode": "static",
                    "address": "192.168.0.200/24",
                    "gateway": "192.168.0.1",
                    "dnsServers": ["192.168.0.1", "8.8.8.8"],
                },
            },
        ],
        "cloudInitUser": {
            "name": "ubuntu",
            "passwordHash": "$1$7.t8q8zZ$59I1IiMXy5w3gIl5Yrn/4/",
            "sudo": "ALL=(ALL) NOPASSWD:ALL",
            "shell": "/bin/bash",
            "groups": ["sudo", "adm"],
            "lockPasswd": False,
        },
        "startStrategy": {"autoStart": True},
    },
    "every other field it has": {
        "cpu": 64,
        "memory": "1.5Gi",
        "osImage": "quay.io/kubevirt/fedora-cloud-container-disk-demo:latest",
        "sshKeySecret": "keys",
        "disks": [DISK],
        "networks": [
            {"name": "fast", "nadName": "sriov-net", "type": "sriov", "primary": True},
            {"name": "ovs", "type": "ovs", "vlanId": 4094},
        ],
        "highAvailability": {
            "restartPolicy": "OnFailure",
            "antiAffinity": True,
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "vm", "operator": "Exists", "effect": "NoSchedule"}],
        },
        "startStrategy": {"runStrategy": "RerunOnFailure", "autoStart": False},
        "gpus": [{"name": "gpu1", "deviceName": "nvidia.com/gpu"}],
        "restoreFromSnapshot": "before",
    },
}

GOOD: dict[str, Spec] = {
    "small": SMALL,
    **ORIGINAL,
    "an instance type": {"instancetype": {"name": "u1.medium"}, "preference": {"name": "ubuntu"}, "disks": [DISK]},
    "an existing claim": spec(disks=[{"name": "old", "existingClaim": "old-disk", "deletePolicy": "Retain"}]),
    "a registry": disk(source={"registry": {"url": "docker://quay.io/x:1", "pullMethod": "node"}}, secretRef="pull"),
    "http with a checksum": disk(image="https://x/y.img", checksum="sha256:aa", secretRef="login"),
    "s3": disk(source={"s3": {"url": "https://s3.example.com/bucket/image"}}, secretRef="s3"),
    "a clone": disk(source={"pvc": {"name": "golden"}}),
    "a snapshot": disk(source={"snapshot": {"name": "golden"}}),
    "a golden image": disk(source={"dataSource": {"name": "fedora", "namespace": "images"}}),
    "blank": disk(source={"blank": {}}),
    "upload": disk(source={"upload": {}}),
    "all about a disk": disk(
        bus="scsi",
        volumeMode="Block",
        accessModes=["ReadWriteMany"],
        serial="abc_1.2+3-4",
        deletePolicy="Retain",
        hotpluggable=True,
    ),
    "sriov": net(type="sriov", resourceName="intel.com/sriov", vlanId=7, ipConfig=STATIC),
    "a named attachment": spec(networks=[{"name": "lan", "nadName": "infra/vlan-100", "ipConfig": STATIC}]),
    "IPv6 and routes": net(
        mtu=9000,
        ipConfig={
            "mode": "static",
            "address": "fd00::10/64",
            "addresses": ["192.168.7.3/24"],
            "gateway": "fd00::1",
            "dnsServers": ["fd00::53"],
            "routes": [{"to": "10.0.0.0/8", "via": "192.168.7.1", "metric": 50}],
            "searchDomains": ["example.com"],
        },
    ),
    "all about an interface": net(
        macAddress="02:AA:bb:00:11:22",
        model="e1000e",
        binding="bridge",
        state="absent",
        physicalInterface="ens224",
        nodeNetwork={"manage": True},
    ),
    "windows": spec(guest="windows", bootstrap={"type": "sysprep", "sysprepSecret": "answers"}, tpm=True),
    "own user data": spec(bootstrap={"userDataSecret": "mine"}),
    "users": spec(
        cloudInitUser={"name": "ubuntu", "passwordSecret": {"name": "login", "key": "pw"}},
        users=[
            {"name": "ann", "sshKeySecret": "ann"},
            {"name": "bob", "password": "p", "sudo": "", "lockPasswd": True},
        ],
        sshKeySecret="team",
    ),
    "keys by the agent": spec(cloudInitUser=USER, sshKeySecret="team", sshKeyPropagation="guestAgent"),
    "power and policies": spec(
        powerState="Paused",
        running=False,
        restartAt="2026-01-01T00:00:00Z",
        deletionProtection=True,
        deletePolicy="Retain",
        updatePolicy="Automatic",
        paused=True,
        firmware="secureBoot",
        machineType="q35",
        evictionStrategy="None",
        terminationGracePeriodSeconds=0,
        hostname="web",
    ),
    "exposed": spec(
        expose=[{"name": "ssh", "port": 22}, {"name": "dns", "port": 53, "protocol": "UDP", "type": "NodePort"}]
    ),
}

BAD: list[tuple[Spec, str, str]] = [
    ({"disks": [DISK]}, "spec.cpu", "cpu and memory"),
    ({"cpu": 1, "disks": [DISK]}, "spec.cpu", "cpu and memory"),
    (spec(instancetype={"name": "u1"}), "spec.cpu", "in place of both"),
    (spec(cpu=0), "spec.cpu", "greater than or equal to 1"),
    (spec(cpu=65), "spec.cpu", "less than or equal to 64"),
    (spec(memory="2GB"), "spec.memory", "should match"),
    (spec(memory="10K"), "spec.memory", "should match"),
    (spec(memory="0"), "spec.memory", "at least 1Mi"),
    (spec(disks=[]), "spec.disks", "at least 1 items"),
    (spec(disks=[DISK, DISK]), "spec.disks[1]", "Duplicate value"),
    (disk(name="System"), "spec.disks[0].name", "should match"),
    (disk(name="cloudinitdisk"), "spec.disks[0].name", "the operator adds"),
    (disk(name="x" * 60), "spec.disks", "NAME-DISK"),
    (disk(size="1Ki"), "spec.disks[0].size", "at least 1Mi"),
    (spec(disks=[{"name": "a"}]), "spec.disks[0].size", "a size"),
    (disk(existingClaim="x"), "spec.disks[0]", "used as it is"),
    (
        spec(disks=[{"name": "a", "existingClaim": "x", "deletePolicy": "Delete"}]),
        "spec.disks[0].deletePolicy",
        "never deleted",
    ),
    (disk(image="a", source={"blank": {}}), "spec.disks[0]", "not both"),
    (disk(image="ftp://x/y"), "spec.disks[0].image", "http://"),
    (disk(source={}), "spec.disks[0].source", "one of"),
    (disk(source={"blank": {}, "upload": {}}), "spec.disks[0].source", "one of"),
    (disk(source={"http": {"url": "docker://x"}}), "spec.disks[0].source.http.url", "should match"),
    (disk(checksum="sha256:aa"), "spec.disks[0].checksum", "by http"),
    (disk(secretRef="x"), "spec.disks[0].secretRef", "to fetch"),
    (disk(bus="ide"), "spec.disks[0].bus", "supported values"),
    (disk(bus="sata", hotpluggable=True), "spec.disks[0].bus", "scsi or virtio"),
    (disk(cdrom=True), "spec.disks[0].cdrom", "what is in the CD-ROM"),
    (disk(cdrom=True, image="a", bus="virtio"), "spec.disks[0].cdrom", "sata, scsi or usb"),
    (disk(cdrom=True, image="a", hotpluggable=True), "spec.disks[0].cdrom", "not plugged in later"),
    (disk(cdrom=True, image="a"), "spec.disks", "beside its CD-ROMs"),
    (
        spec(disks=[{**DISK, "name": "iso", "image": "a", "cdrom": True}, {**DISK, "image": "b"}], osImage="c"),
        "spec.osImage",
        "something else already",
    ),
    (spec(cloneFrom="a", osImage="b"), "spec.cloneFrom", "not with both"),
    (disk(serial="with space"), "spec.disks[0].serial", "should match"),
    (spec(disks=[{**DISK, "boot": True}, {**DISK, "name": "b", "boot": True}]), "spec.disks", "only one disk"),
    (spec(disks=[{**DISK, "image": "a"}], osImage="b"), "spec.osImage", "something else already"),
    (spec(networks=[{"name": "lan"}]), "spec.networks[0].type", "of which type"),
    (net(type="macvlan"), "spec.networks[0].type", "cannot bind macvlan"),
    (net(type="sriov"), "spec.networks[0].resourceName", "device pool"),
    (net(resourceName="a/b"), "spec.networks[0].resourceName", "device pool"),
    (net(type="sriov", resourceName="a/b", bridgeName="br0"), "spec.networks[0]", "no bridge"),
    (net(vlanId=0), "spec.networks[0].vlanId", "greater than or equal to 1"),
    (net(vlanId=4095), "spec.networks[0].vlanId", "less than or equal to 4094"),
    (net(nadName="x", vlanId=5), "spec.networks[0]", "used as it is"),
    (net(name="a-long-network"), "spec.networks[0].bridgeName", "15 characters"),
    (net(bridgeName="a-long-bridge-name"), "spec.networks[0].bridgeName", "15"),
    (net(nodeNetwork={"manage": True}), "spec.networks[0].physicalInterface", "to put into it"),
    (net(binding="masquerade"), "spec.networks[0].binding", "pod network"),
    (net(binding="sriov"), "spec.networks[0].binding", "for type sriov"),
    (net(macAddress="03:00:00:00:00:01"), "spec.networks[0].macAddress", "should match"),
    (net(mtu=100), "spec.networks[0].mtu", "greater than or equal to 576"),
    (net(ipConfig={"mode": "static"}), "spec.networks[0].ipConfig.address", "needs an address"),
    (net(ipConfig={"mode": "dhcp", "address": "1.2.3.4/8"}), "spec.networks[0].ipConfig.mode", "leave them out"),
    (net(ipConfig={"mode": "static", "address": "1.2.3.4"}), "spec.networks[0].ipConfig.address", "192.168.1.10/24"),
    (net(ipConfig={"mode": "static", "address": "1.2.3.400/24"}), "spec.networks[0].ipConfig.address", "/24"),
    (net(ipConfig={**STATIC, "gateway": "gw"}), "spec.networks[0].ipConfig.gateway", "must be an address"),
    (net(ipConfig={**STATIC, "dnsServers": ["x.y"]}), "spec.networks[0].ipConfig.dnsServers[0]", "must be an address"),
    (spec(networks=[{"name": "default", "type": "ovs"}]), "spec.networks[0]", "is not created"),
    (spec(networks=[{"name": "default", "vlanId": 5}]), "spec.networks[0]", "is not created"),
    (spec(networks=[{"name": "default", "ipConfig": STATIC}]), "spec.networks[0].ipConfig", "only dhcp"),
    (spec(networks=[{"name": "default", "state": "absent"}]), "spec.networks[0].state", "unplugged"),
    (
        spec(networks=[{"name": "default"}, {"name": "lan", "type": "bridge", "primary": True}]),
        "spec.networks",
        "leave default out",
    ),
    (
        spec(networks=[{"name": item, "type": "ovs", "primary": True} for item in "ab"]),
        "spec.networks",
        "only one network",
    ),
    (
        spec(
            networks=[
                {"name": "a", "type": "ovs", "macAddress": "02:00:00:00:00:0a"},
                {"name": "b", "type": "ovs", "macAddress": "02:00:00:00:00:0A"},
            ]
        ),
        "spec.networks",
        "of its own",
    ),
    (
        {**net(ipConfig=STATIC), "bootstrap": {"type": "none"}},
        "spec.networks",
        "must be cloudInit",
    ),
    (spec(guest="windows", cloudInitUser=USER), "spec.bootstrap", "must be cloudInit"),
    (spec(sshKeySecret="a", bootstrap={"userDataSecret": "b"}), "spec.bootstrap", "leave them out"),
    (spec(bootstrap={"type": "sysprep"}), "spec.bootstrap.sysprepSecret", "needs the Secret"),
    (spec(bootstrap={"type": "none", "userDataSecret": "b"}), "spec.bootstrap.userDataSecret", "for cloud-init"),
    (spec(sshKeyPropagation="guestAgent"), "spec.sshKeyPropagation", "need a sshKeySecret"),
    (spec(cloudInitUser=USER, users=[USER]), "spec.users", "already"),
    (spec(users=[USER, USER]), "spec.users[1]", "Duplicate value"),
    (spec(cloudInitUser={"name": "Big"}), "spec.cloudInitUser.name", "should match"),
    (
        spec(cloudInitUser={**USER, "password": "a", "passwordSecret": {"name": "b"}}),
        "spec.cloudInitUser.passwordSecret",
        "not in both",
    ),
    (
        spec(startStrategy={"runStrategy": "Always"}, highAvailability={"restartPolicy": "Never"}),
        "spec.startStrategy.runStrategy",
        "contradict",
    ),
    (
        {**net(primary=True), "expose": [{"name": "ssh", "port": 22}]},
        "spec.expose",
        "on the pod network",
    ),
    (spec(powerState="Sleeping"), "spec.powerState", "supported values"),
    (spec(expose=[{"name": "ssh", "port": 0}]), "spec.expose[0].port", "greater than or equal to 1"),
    (spec(guest="bsd"), "spec.guest", "supported values"),
    (spec(firmware="coreboot"), "spec.firmware", "supported values"),
]


def _some(required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[Spec]:
    return st.fixed_dictionaries(required, optional=optional)


_one = st.sampled_from
_sizes = _one(["10Gi", "1Mi", "1023Ki", "1.5G", "0", "20", "5E"])
_sources = _one(
    [{}, {"blank": {}}, {"http": {"url": "http://x/y"}}, {"pvc": {"name": "a"}}, {"s3": {"url": "https://x/y"}}]
)
_disks = _some(
    {"name": _one(["a", "b", "c", "sysprep"])},
    {
        "size": _sizes,
        "boot": st.booleans(),
        "image": _one(["http://x/y", "quay.io/a:1", "ftp://x", "docker://x"]),
        "source": _sources,
        "bus": _one(["virtio", "scsi", "sata", "usb"]),
        "hotpluggable": st.booleans(),
        "cdrom": _one([False, False, True]),
        "existingClaim": _one(["old"]),
        "deletePolicy": _one(["Delete", "Retain"]),
        "accessModes": _one([[], ["ReadWriteOnce"]]),
        "checksum": _one(["md5:aa"]),
        "secretRef": _one(["s"]),
        "storageClassName": _one(["fast"]),
    },
)
_addresses = _one(
    ["10.0.0.1/8", "10.0.0.1", "fd00::1/64", "10.0.0.01/8", "::ffff:10.0.0.1/96", "10.0.0.1/33", "10.0.0.1/08"]
)
_gateways = _one(["10.0.0.1", "fd00::1", "fe80::1%eth0", "::ffff:10.0.0.1", "010.0.0.1", "gateway", "10.0.0.1/8"])
_ip = _some(
    {"mode": _one(["static", "static", "dhcp"])},
    {
        "address": _addresses,
        "addresses": st.lists(_addresses, max_size=1),
        "gateway": _gateways,
        "dnsServers": st.lists(_gateways, max_size=1),
        "routes": st.lists(_some({"to": _addresses, "via": _gateways}, {}), max_size=1),
    },
)
_networks = _some(
    {"name": _one(["default", "lan", "a-long-network"])},
    {
        "type": _one(["bridge", "bridge", "ovs", "sriov", "macvlan"]),
        "nadName": _one(["net", "infra/net"]),
        "vlanId": _one([7]),
        "bridgeName": _one(["br0"]),
        "physicalInterface": _one(["ens1"]),
        "nodeNetwork": _one([{}, {"manage": True}, {"manage": False}]),
        "resourceName": _one(["a/b"]),
        "ipConfig": _ip,
        "primary": st.booleans(),
        "macAddress": _one(["02:00:00:00:00:0a", "02:00:00:00:00:0A"]),
        "model": _one(["virtio"]),
        "binding": _one(["masquerade", "bridge", "sriov"]),
        "mtu": _one([1400]),
        "state": _one(["up", "down", "absent"]),
    },
)
_users = _some(
    {"name": _one(["ann", "bob"])},
    {"password": _one(["p"]), "passwordHash": _one(["$6$a$b"]), "passwordSecret": _one([{"name": "s"}])},
)


def _few(required: dict[str, Any], optional: dict[str, Any], most: int) -> st.SearchStrategy[Spec]:
    """Only a few of the optional fields at once: with all of them, nothing would ever be right."""
    chosen = st.lists(_one(sorted(optional)), max_size=most, unique=True)
    return chosen.flatmap(lambda names: _some({**required, **{name: optional[name] for name in names}}, {}))


_whole = {
    "cpu": st.integers(1, 64),
    "memory": _sizes,
    "instancetype": _one([{"name": "u1"}]),
    "networks": st.lists(_networks, max_size=3),
    "osImage": _one(["quay.io/a:1"]),
    "guest": _one(["linux", "windows"]),
    "bootstrap": _some(
        {},
        {"type": _one(["none", "cloudInit", "sysprep"]), "sysprepSecret": _one(["s"]), "userDataSecret": _one(["u"])},
    ),
    "cloudInitUser": _users,
    "users": st.lists(_users, max_size=2),
    "sshKeySecret": _one(["keys"]),
    "sshKeyPropagation": _one(["cloudInit", "guestAgent"]),
    "startStrategy": _some({}, {"runStrategy": _one(["Always", "RerunOnFailure", "Once", "Manual"])}),
    "highAvailability": _some({}, {"restartPolicy": _one(["Always", "OnFailure", "Never"])}),
    "expose": st.lists(_some({"name": _one(["ssh", "web"]), "port": _one([22])}, {}), max_size=2),
}
_rarely_wrong = st.one_of(
    st.just([DISK]), st.lists(_disks, min_size=1, max_size=3), st.lists(_disks, min_size=1, max_size=1)
)
random_specs: st.SearchStrategy[Spec] = st.one_of(
    _few({"cpu": st.just(1), "memory": st.just("1Gi"), "disks": st.just([DISK])}, _whole, 2),
    _few({"cpu": st.just(1), "memory": st.just("1Gi"), "disks": _rarely_wrong}, _whole, 4),
)
