"""What the machine is made of: processors, memory, firmware, and what is plugged in."""

from __future__ import annotations

from konverge.operators.wukong import names
from konverge.operators.wukong.effective_spec import attached, boot_disk, bootstrap_type, is_pod_network, mac_for
from konverge.operators.wukong.kinds import domain
from konverge.operators.wukong.kinds.domain import Domain, Present
from konverge.operators.wukong.resource import Wukong
from konverge.operators.wukong.spec import WukongSpec
from konverge.operators.wukong.spec_disks import Disk
from konverge.operators.wukong.spec_networks import Network

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
    return domain.Features(
        acpi=Present(),
        smm=domain.Switch(enabled=True) if secure else None,
        hyperv=_hyperv() if windows else None,
    )


def _hyperv() -> domain.HyperV:
    return domain.HyperV(relaxed=Present(), vapic=Present(), spinlocks=domain.Spinlocks(spinlocks=_SPINLOCKS))


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
        autoattach_pod_interface=None if any(map(is_pod_network, networks)) else False,
    )


def _disks(spec: WukongSpec) -> list[domain.Disk]:
    first = boot_disk(spec).name
    disks = [_disk(spec, disk, boots=disk.name == first) for disk in spec.disks]
    if bootstrap_type(spec) == "cloudInit":
        disks.append(domain.Disk(name=names.CLOUD_INIT_VOLUME, disk=domain.Target(bus="virtio")))
    elif bootstrap_type(spec) == "sysprep":
        disks.append(domain.Disk(name=names.SYSPREP_VOLUME, cdrom=domain.Target(bus="sata")))
    return disks


def _disk(spec: WukongSpec, disk: Disk, *, boots: bool) -> domain.Disk:
    bus = disk.bus or _usual_bus(spec, disk)
    return domain.Disk(name=disk.name, boot_order=1 if boots else None, serial=disk.serial, disk=domain.Target(bus=bus))


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
    if is_pod_network(network):
        return "masquerade"
    return "sriov" if network.type == "sriov" else "bridge"
