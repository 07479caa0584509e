"""What happens inside a running instance: its agent answers, it crashes, it switches itself off.

What is known of a guest comes from the domain at once, from its agent later. The quirks are those that people meet: an
address on a second network needs the agent, and the agent may forget an address for a moment.
"""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from math import inf

from konverge.objects.kinds.core_v1 import Pod
from konverge.runtime import Context
from konverge.sim.kubevirt.controller import Pace, Timings, seconds
from konverge.sim.kubevirt.faults import Faults
from konverge.sim.kubevirt.kinds import Instance, Obj, drop_condition, is_true, set_condition
from konverge.sim.kubevirt.launcher import claims_of

GUEST_OS: Obj = {
    "id": "debian",
    "name": "Debian GNU/Linux",
    "prettyName": "Debian GNU/Linux 13 (trixie)",
    "version": "13 (trixie)",
    "versionId": "13",
    "kernelRelease": "6.12.0-konverge",
    "kernelVersion": "#1 SMP",
    "machine": "x86_64",
}


def interfaces(instance: Instance, pod: Pod | None, *, agent: bool, silent: bool = False) -> list[Obj]:
    """`silent`: the agent answers without addresses."""
    networks = {network["name"]: network for network in instance.spec.get("networks", [])}
    shown = []
    declared = instance.spec["domain"]["devices"].get("interfaces", [])
    plugged = (interface for interface in declared if interface.get("state") != "absent")
    for number, interface in enumerate(plugged):
        name = interface["name"]
        on_pod = "pod" in networks.get(name, {})
        made: Obj = {"name": name, "mac": _mac(instance, interface), "linkState": "up", "infoSource": "domain"}
        made["podInterfaceName"] = "eth0" if on_pod else f"pod{sha256(name.encode()).hexdigest()[:11]}"
        if not on_pod:
            made["infoSource"] += ", multus-status"
        address = _address(instance, name, pod, on_pod=on_pod, agent=agent)
        if address and not silent:
            made |= {"ipAddress": address, "ipAddresses": [address]}
        if agent:
            made |= {"interfaceName": f"enp{number + 1}s0", "infoSource": f"{made['infoSource']}, guest-agent"}
        shown.append(made)
    return shown


def _mac(instance: Instance, interface: Obj) -> str:
    """As asked; otherwise another one with every start, as KubeVirt does it where no MAC pool is installed."""
    if interface.get("macAddress"):
        return str(interface["macAddress"])
    digest = sha256(f"{instance.metadata.uid}/{interface['name']}".encode()).digest()
    return ":".join(f"{octet:02x}" for octet in (0x02, *digest[:5]))


def _address(instance: Instance, name: str, pod: Pod | None, *, on_pod: bool, agent: bool) -> str:
    if on_pod:
        return (pod.status.pod_ip or "") if pod is not None else ""
    if not agent:
        return ""
    digest = sha256(f"{instance.metadata.namespace}/{instance.metadata.name}/{name}".encode()).digest()
    return f"192.168.{digest[0]}.{2 + digest[1] % 250}"


def migratable(instance: Instance, modes: dict[str, list[str]], *, refused: bool = False) -> tuple[str, str]:
    """Reason and message why it cannot be migrated; empty when it can. `modes` are the access modes by claim."""
    devices = instance.spec["domain"]["devices"]
    if devices.get("gpus") or devices.get("hostDevices"):
        return "HostDeviceNotLiveMigratable", "VMI uses a PCI host devices"
    networks = {network["name"]: network for network in instance.spec.get("networks", [])}
    for interface in devices.get("interfaces", []):
        if "bridge" in interface and "pod" in networks.get(interface["name"], {}):
            message = "cannot migrate VMI which does not use masquerade to connect to the pod network"
            return "InterfaceNotLiveMigratable", message
    for claim, access_modes in modes.items():
        if refused or "ReadWriteMany" not in access_modes:
            rule = "live migration requires that all PVCs must be shared (using ReadWriteMany access mode)"
            return "DisksNotLiveMigratable", f"cannot migrate VMI: PVC {claim} is not shared, {rule}"
    return "", ""


_TOPOLOGY = ("cores", "sockets", "threads")


class Guests:
    """The insides of all instances."""

    def __init__(self, pace: Pace, timings: Timings) -> None:
        self._pace = pace
        self._timings = timings
        self._crashes: Counter[tuple[str, str]] = Counter()
        """How often a machine has crashed by the present fault."""

    # -------------------------------------------------------------- its end

    def crashes_at_start(self, instance: Instance, wrong: Faults) -> str:
        """Why it does not come up; nothing when it does."""
        crash = wrong.get("crash")
        key = instance.metadata.namespace, instance.metadata.name
        if crash is None:
            del self._crashes[key]
            return ""
        if "after" in crash or self._crashes[key] >= seconds(crash, "times", inf):
            return ""
        self._crashes[key] += 1
        return "server error. command SyncVMI failed: LibvirtError: internal error: process exited while connecting"

    def ends(self, instance: Instance, wrong: Faults) -> tuple[str, float]:
        """The phase that a running one ends with, or nothing; and when to ask again."""
        due, key = inf, (instance.metadata.namespace, instance.metadata.name)
        for name, phase in (("crash", "Failed"), ("shutdown", "Succeeded")):
            settings = wrong.get(name)
            if settings is None or (name == "crash" and "after" not in settings):
                continue
            if name == "crash" and self._crashes[key] >= seconds(settings, "times", inf):
                continue
            after = seconds(settings, "after", 5.0)
            left = self._pace.left(instance.metadata, f"end {name}", (after, after))
            if left == 0:
                self._crashes[key] += 1
                return phase, inf
            due = min(due, left)
        return "", due

    # -------------------------------------------------------------- what is known of it

    def report(self, ctx: Context[Instance], pod: Pod, modes: dict[str, list[str]], wrong: Faults) -> float:
        """Write down what KubeVirt would know by now; the answer is when there is more to know."""
        instance, status = ctx.obj, ctx.obj.status
        left = self._agent_left(instance, wrong)
        silent, moment = self._silence(instance, wrong)
        self._report_agent(status, connected=left == 0)
        status["interfaces"] = interfaces(instance, pod, agent=left == 0, silent=silent)
        status["volumeStatus"] = _volumes(instance, status.get("volumeStatus", []))
        cpu = instance.spec["domain"]["cpu"]
        status["currentCPUTopology"] = {name: cpu[name] for name in _TOPOLOGY if name in cpu}
        guest = instance.spec["domain"]["memory"]["guest"]
        held = status.get("memory") or {"guestAtBoot": guest}
        status["memory"] = {**held, "guestCurrent": guest, "guestRequested": guest}
        reason, message = migratable(instance, modes, refused="rwo" in wrong)
        set_condition(status, "LiveMigratable", not reason, reason, message)
        status["migrationMethod"] = "BlockMigration" if reason else "LiveMigration"
        if instance.spec.get("startStrategy") == "Paused" and not self._pace.begun(instance.metadata, "paused"):
            self._pace.left(instance.metadata, "paused", (0.0, 0.0))
            set_condition(status, "Paused", True, "PausedByUser", "VMI was paused by user")
        return min(left or inf, moment)

    def _agent_left(self, instance: Instance, wrong: Faults) -> float:
        """Seconds until the agent answers. One that has answered goes on, also when this simulation is restarted."""
        if "no-agent" in wrong:
            return inf
        known = is_true(instance.status, "AgentConnected")
        return 0.0 if known else self._pace.left(instance.metadata, "agent", self._timings.agent)

    def _report_agent(self, status: Obj, *, connected: bool) -> None:
        if connected:
            set_condition(status, "AgentConnected", True)
            status["guestOSInfo"] = GUEST_OS
        else:
            drop_condition(status, "AgentConnected")
            status.pop("guestOSInfo", None)

    def _silence(self, instance: Instance, wrong: Faults) -> tuple[bool, float]:
        """Whether the agent reports no addresses just now, and when that changes."""
        settings = wrong.get("ip-vanishes")
        if settings is None:
            return False, inf
        after, lasting = seconds(settings, "after", 20.0), seconds(settings, "seconds", 3.0)
        left = self._pace.left(instance.metadata, "ip goes", (after, after))
        if left:
            return False, left
        left = self._pace.left(instance.metadata, "ip returns", (lasting, lasting))
        return left > 0, left or inf


def _volumes(instance: Instance, present: list[Obj]) -> list[Obj]:
    """Those that were plugged in later say so."""
    claims, at_start = claims_of(instance.spec), not present
    known = {volume_status["name"]: volume_status for volume_status in present}
    volumes = []
    for number, volume in enumerate(instance.spec.get("volumes", [])):
        name = volume["name"]
        made: Obj = known.get(name) or {"name": name, "target": f"vd{chr(ord('a') + number % 26)}"}
        if name in claims:
            made["persistentVolumeClaimInfo"] = {"claimName": claims[name]}
        if not at_start and name not in known:
            made |= {"phase": "Ready", "reason": "VolumeReady", "hotplugVolume": {"attachPodName": f"hp-volume-{name}"}}
        volumes.append(made)
    return volumes
