"""The inside of a machine, as KubeVirt has it: processors, memory, firmware, devices."""

from __future__ import annotations

from konverge.objects import Model, required


class Present(Model):
    """A choice that is made by being there: `masquerade: {}`."""


class Cpu(Model):
    """The topology. Only sockets can be added to a running machine."""

    sockets: int | None = None
    cores: int | None = None
    threads: int | None = None


class Memory(Model):
    """What the guest sees."""

    guest: str | None = None


class Machine(Model):
    """The emulated board."""

    type: str | None = None


class Efi(Model):
    """UEFI."""

    secure_boot: bool | None = None


class Bootloader(Model):
    """One of two."""

    bios: Present | None = None
    efi: Efi | None = None


class Firmware(Model):
    """What starts first."""

    bootloader: Bootloader | None = None


class Switch(Model):
    """On or off."""

    enabled: bool | None = None


class Spinlocks(Model):
    """How often a guest tries before it asks the host."""

    spinlocks: int | None = None


class HyperV(Model):
    """What Windows expects of its host."""

    relaxed: Present | None = None
    vapic: Present | None = None
    spinlocks: Spinlocks | None = None


class Features(Model):
    """Of the emulated board."""

    acpi: Present | None = None
    smm: Switch | None = None
    hyperv: HyperV | None = None


class Timer(Model):
    """One clock of the board."""

    present: bool | None = None
    tick_policy: str | None = None


class Timers(Model):
    """The clocks of the board."""

    hpet: Timer | None = None
    pit: Timer | None = None
    rtc: Timer | None = None
    hyperv: Present | None = None


class Clock(Model):
    """What time it is for the guest."""

    utc: Present | None = None
    timer: Timers | None = None


class Target(Model):
    """How a disk appears."""

    bus: str | None = None


class Disk(Model):
    """A disk or a CD-ROM; the volume of the same name is what is on it."""

    name: str = required(str)
    boot_order: int | None = None
    serial: str | None = None
    disk: Target | None = None
    cdrom: Target | None = None


class Interface(Model):
    """A network card; the network of the same name is what it is on."""

    name: str = required(str)
    mac_address: str | None = None
    model: str | None = None
    state: str | None = None
    masquerade: Present | None = None
    bridge: Present | None = None
    sriov: Present | None = None


class Gpu(Model):
    """A device of the node."""

    name: str = required(str)
    device_name: str = required(str)


class Devices(Model):
    """What is plugged in."""

    disks: list[Disk] | None = None
    interfaces: list[Interface] | None = None
    gpus: list[Gpu] | None = None
    tpm: Present | None = None
    autoattach_pod_interface: bool | None = None


class Domain(Model):
    """The machine itself."""

    cpu: Cpu | None = None
    memory: Memory | None = None
    machine: Machine | None = None
    firmware: Firmware | None = None
    features: Features | None = None
    clock: Clock | None = None
    devices: Devices = required(Devices)
