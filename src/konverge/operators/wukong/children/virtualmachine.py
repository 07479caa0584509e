"""The VirtualMachine: processors, memory, firmware, disks and networks of a Wukong, as KubeVirt declares them.

Processors are counted in sockets, since only these can be added to a running machine. Volumes are claims, not
DataVolumes: a restore puts the data back into them. What KubeVirt and others fill in (the board, the architecture, a
plugged-in volume) is not in it, so an apply leaves it alone.

The Services of `spec.expose` reach the machine by the label that its pod has. A VirtualMachineSnapshot keeps the
machine, and a VirtualMachineRestore puts it back.
"""

from __future__ import annotations

from konverge.objects import LabelSelector, ObjectMeta
from konverge.objects.kinds.core_v1 import (
    Affinity,
    LocalObjectReference,
    PodAffinityTerm,
    PodAntiAffinity,
    Service,
    ServicePort,
    ServiceSpec,
    WeightedPodAffinityTerm,
)
from konverge.operators.wukong import names
from konverge.operators.wukong.children import metadata
from konverge.operators.wukong.children.cloudinit import wants_network_data
from konverge.operators.wukong.effective_spec import attached, attachment_name, claim_name, mac_for, run_strategy
from konverge.operators.wukong.kinds import domain, machines
from konverge.operators.wukong.kinds.domain import Domain, Present
from konverge.operators.wukong.kinds.machines import InstanceSpec, InstanceTemplate, TemplateMeta, VirtualMachine
from konverge.operators.wukong.kinds.migrations import MigrationSpec, VirtualMachineInstanceMigration
from konverge.operators.wukong.kinds.snapshots import (
    MachineReference,
    RestoreSpec,
    SnapshotSpec,
    VirtualMachineRestore,
    VirtualMachineSnapshot,
)
from konverge.operators.wukong.resource import Wukong, WukongSnapshot
from konverge.operators.wukong.spec import (
    WukongSpec,
    all_users,
    boot_order,
    bootstrap_type,
    keys_by_agent,
    user_data_secret,
)
from konverge.operators.wukong.spec_disks import Disk
from konverge.operators.wukong.spec_guest import Expose
from konverge.operators.wukong.spec_networks import Network
from konverge.operators.wukong.spec_parts import Matcher

IN_PLACE = "InPlace"
"""The policy of a restore that puts the data back into the claims that there are."""


def services_for(wukong: Wukong) -> list[Service]:
    return [service_for(wukong, exposed) for exposed in wukong.spec.expose]


def service_for(wukong: Wukong, expose: Expose) -> Service:
    port = ServicePort(
        name=expose.name,
        port=expose.port,
        target_port=expose.target_port or expose.port,
        protocol=expose.protocol,
    )
    return Service(
        metadata=metadata(wukong, names.service(wukong.metadata.name, expose.name)),
        spec=ServiceSpec(type=expose.type, selector={names.LABEL: wukong.metadata.name}, ports=[port]),
    )


def virtual_machine_for(wukong: Wukong, *, strategy: str | None = None) -> VirtualMachine:
    """The machine as it should be. `strategy` goes before what the spec says of power; empty leaves it to others."""
    spec = wukong.spec
    meta = metadata(wukong, names.machine(wukong.metadata.name))
    if spec.deletion_protection:
        meta.labels[names.DELETE_PROTECTION] = "True"
    return VirtualMachine(
        metadata=meta,
        spec=machines.VirtualMachineSpec(
            run_strategy=run_strategy(spec) if strategy is None else strategy,
            instancetype=_matcher(spec.instancetype),
            preference=_matcher(spec.preference),
            template=InstanceTemplate(metadata=TemplateMeta(labels=_labels(wukong)), spec=_instance(wukong)),
        ),
    )


def _labels(wukong: Wukong) -> dict[str, str]:
    labels = names.labels(wukong.metadata.name)
    if _spread(wukong.spec):
        labels[names.SPREAD] = "true"
    return labels


def _matcher(given: Matcher | None) -> machines.Matcher | None:
    return machines.Matcher(name=given.name, kind=given.kind) if given is not None else None


def _instance(wukong: Wukong) -> InstanceSpec:
    spec = wukong.spec
    where = spec.high_availability
    return InstanceSpec(
        domain=domain_for(wukong),
        volumes=_volumes(wukong),
        networks=_networks(wukong),
        access_credentials=_credentials(spec),
        node_selector=(where.node_selector or None) if where is not None else None,
        affinity=_away_from_others() if _spread(spec) else None,
        tolerations=(where.tolerations or None) if where is not None else None,
        eviction_strategy=spec.eviction_strategy,
        termination_grace_period_seconds=spec.termination_grace_period_seconds,
        hostname=spec.hostname,
    )


def _volumes(wukong: Wukong) -> list[machines.Volume]:
    spec = wukong.spec
    volumes = [
        machines.Volume(
            name=disk.name,
            persistent_volume_claim=machines.ClaimSource(
                claim_name=claim_name(wukong, disk), hotpluggable=disk.hotpluggable or None
            ),
        )
        for disk in spec.disks
    ]
    if bootstrap_type(spec) == "cloudInit":
        volumes.append(machines.Volume(name=names.CLOUD_INIT_VOLUME, cloud_init_no_cloud=_cloud_init(wukong)))
    if spec.bootstrap is not None and spec.bootstrap.sysprep_secret is not None:
        files = machines.SysprepSource(secret=LocalObjectReference(name=spec.bootstrap.sysprep_secret))
        volumes.append(machines.Volume(name=names.SYSPREP_VOLUME, sysprep=files))
    return volumes


def _cloud_init(wukong: Wukong) -> machines.CloudInitSource:
    ours = LocalObjectReference(name=names.cloud_init(wukong.metadata.name))
    theirs = user_data_secret(wukong.spec)
    return machines.CloudInitSource(
        secret_ref=ours if theirs is None else LocalObjectReference(name=theirs),
        network_data_secret_ref=ours if wants_network_data(wukong.spec) else None,
    )


def _networks(wukong: Wukong) -> list[machines.Network]:
    return [
        machines.Network(name=network.name, pod=Present())
        if network.is_pod_network
        else machines.Network(
            name=network.name, multus=machines.MultusNetwork(network_name=attachment_name(wukong, network))
        )
        for network in attached(wukong.spec)
    ]


def _credentials(spec: WukongSpec) -> list[machines.AccessCredential] | None:
    if not keys_by_agent(spec) or spec.ssh_key_secret is None:
        return None
    agent = machines.AgentPropagation(users=[user.name for user in all_users(spec)])
    source = machines.KeySource(secret=machines.SecretSource(secret_name=spec.ssh_key_secret))
    method = machines.Propagation(qemu_guest_agent=agent)
    return [machines.AccessCredential(ssh_public_key=machines.SshPublicKey(source=source, propagation_method=method))]


def _spread(spec: WukongSpec) -> bool:
    return spec.high_availability is not None and spec.high_availability.anti_affinity


def _away_from_others() -> Affinity:
    """As far as there are nodes: with fewer nodes than machines, the last ones must still run."""
    term = PodAffinityTerm(
        label_selector=LabelSelector(match_labels={names.SPREAD: "true"}), topology_key="kubernetes.io/hostname"
    )
    preferred = WeightedPodAffinityTerm(weight=100, pod_affinity_term=term)
    return Affinity(pod_anti_affinity=PodAntiAffinity(preferred_during_scheduling_ignored_during_execution=[preferred]))


def snapshot_for(snapshot: WukongSnapshot) -> VirtualMachineSnapshot:
    """By the name of the WukongSnapshot: asked for twice, it is the same one. (The original put the time into it.)"""
    wukong, place = snapshot.spec.wukong_name, snapshot.metadata
    return VirtualMachineSnapshot(
        metadata=ObjectMeta(name=place.name, namespace=place.namespace, labels=names.labels(wukong)),
        spec=SnapshotSpec(source=_machine(wukong)),
    )


def migration_for(wukong: Wukong, token: str) -> VirtualMachineInstanceMigration:
    """By the token: asked for twice, it is the same one."""
    name = wukong.metadata.name
    return VirtualMachineInstanceMigration(
        metadata=metadata(wukong, names.migration(name, token)), spec=MigrationSpec(vmi_name=names.machine(name))
    )


def restore_for(wukong: Wukong, snapshot: str) -> VirtualMachineRestore:
    """Back to a VirtualMachineSnapshot, into the claims that there are: under new names they would not be ours."""
    name = wukong.metadata.name
    return VirtualMachineRestore(
        metadata=metadata(wukong, names.restore(name, snapshot)),
        spec=RestoreSpec(
            target=_machine(name),
            virtual_machine_snapshot_name=snapshot,
            volume_restore_policy=IN_PLACE,
        ),
    )


def _machine(wukong: str) -> MachineReference:
    return MachineReference(api_group="kubevirt.io", kind="VirtualMachine", name=names.machine(wukong))


# ------------------------------------------------------------------ hardware


_SPINLOCKS = 8191
"""What Microsoft recommends to hosts."""


def domain_for(wukong: Wukong) -> Domain:
    spec = wukong.spec
    windows = spec.guest == "windows"
    return Domain(
        # An instance type brings both, and KubeVirt refuses to hear them twice.
        cpu=None if spec.cpu is None else domain.Cpu(sockets=spec.cpu, cores=1, threads=1),
        memory=None if spec.memory is None else domain.Memory(guest=spec.memory),
        machine=None if spec.machine_type is None else domain.Machine(type=spec.machine_type),
        firmware=_firmware(spec),
        features=_features(spec),
        clock=_windows_clock() if windows else None,
        devices=_devices(wukong),
    )


def _boots_by(spec: WukongSpec) -> str | None:
    return spec.firmware or ("efi" if spec.guest == "windows" else None)


def _firmware(spec: WukongSpec) -> domain.Firmware | None:
    chosen = _boots_by(spec)
    if chosen is None:
        return None
    if chosen == "bios":
        return domain.Firmware(bootloader=domain.Bootloader(bios=Present()))
    # Said in both cases: where nothing is said, KubeVirt's efi is a secure one.
    return domain.Firmware(bootloader=domain.Bootloader(efi=domain.Efi(secure_boot=chosen == "secureBoot")))


def _features(spec: WukongSpec) -> domain.Features | None:
    windows, secure = spec.guest == "windows", _boots_by(spec) == "secureBoot"
    if not windows and not secure:
        return None
    spinlocks = domain.Spinlocks(spinlocks=_SPINLOCKS)
    return domain.Features(
        acpi=Present(),
        smm=domain.Switch(enabled=True) if secure else None,
        hyperv=domain.HyperV(relaxed=Present(), vapic=Present(), spinlocks=spinlocks) if windows else None,
    )


def _windows_clock() -> domain.Clock:
    timers = domain.Timers(
        hpet=domain.Timer(present=False),
        pit=domain.Timer(tick_policy="delay"),
        rtc=domain.Timer(tick_policy="catchup"),
        hyperv=Present(),
    )
    return domain.Clock(utc=Present(), timer=timers)


def _devices(wukong: Wukong) -> domain.Devices:
    spec = wukong.spec
    networks = attached(spec)
    tpm = spec.guest == "windows" if spec.tpm is None else spec.tpm
    return domain.Devices(
        disks=_disks(spec),
        interfaces=[_interface(wukong, network) for network in networks],
        gpus=[domain.Gpu(name=gpu.name, device_name=gpu.device_name) for gpu in spec.gpus] or None,
        tpm=Present() if tpm else None,
        autoattach_pod_interface=None if any(network.is_pod_network for network in networks) else False,
    )


def _disks(spec: WukongSpec) -> list[domain.Disk]:
    order = {name: place for place, name in enumerate(boot_order(spec), 1)}
    disks = [_disk(spec, disk, order.get(disk.name)) for disk in spec.disks]
    if bootstrap_type(spec) == "cloudInit":
        disks.append(domain.Disk(name=names.CLOUD_INIT_VOLUME, disk=domain.Target(bus="virtio")))
    elif bootstrap_type(spec) == "sysprep":
        disks.append(domain.Disk(name=names.SYSPREP_VOLUME, cdrom=domain.Target(bus="sata")))
    return disks


def _disk(spec: WukongSpec, disk: Disk, order: int | None) -> domain.Disk:
    if disk.cdrom:
        target = domain.Target(bus=disk.bus or "sata")
        return domain.Disk(name=disk.name, boot_order=order, serial=disk.serial, cdrom=target)
    target = domain.Target(bus=disk.bus or _usual_bus(spec, disk))
    return domain.Disk(name=disk.name, boot_order=order, serial=disk.serial, disk=target)


def _usual_bus(spec: WukongSpec, disk: Disk) -> str:
    """Windows has no driver for virtio of its own; what is plugged in later has no place on sata."""
    if spec.guest != "windows":
        return "virtio"
    return "scsi" if disk.hotpluggable else "sata"


def _interface(wukong: Wukong, network: Network) -> domain.Interface:
    interface = domain.Interface(
        name=network.name,
        mac_address=mac_for(wukong, network),
        model=network.model or ("e1000e" if wukong.spec.guest == "windows" and network.type != "sriov" else None),
        state=network.state,
    )
    match network.binding or _usual_binding(network):
        case "masquerade":
            interface.masquerade = Present()
        case "sriov":
            interface.sriov = Present()
        case _:
            interface.bridge = Present()
    return interface


def _usual_binding(network: Network) -> str:
    if network.is_pod_network:
        return "masquerade"
    return "sriov" if network.type == "sriov" else "bridge"
