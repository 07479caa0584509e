"""`VirtualMachine` and `VirtualMachineInstance`, kubevirt.io/v1: a machine that may be off, and one that is on.

KubeVirt makes instances; we read them. An instance has no status subresource.
"""

from __future__ import annotations

from konverge.objects import Condition, Model, Object, Resource, field, required
from konverge.objects.kinds.core_v1 import Affinity, LocalObjectReference, Toleration
from konverge.objects.model import NullableList
from konverge.operators.wukong.kinds.domain import Cpu, Domain, Memory, Present


class InstanceInterface(Model):
    """A network card as domain, pod and guest agent report it. One that the guest made itself has no name."""

    name: str = ""
    mac: str = ""
    ip_address: str = ""
    ip_addresses: NullableList[str] = []
    interface_name: str = ""


class GuestOsInfo(Model):
    """What the guest agent reports about the system."""

    name: str = ""
    pretty_name: str = ""
    version: str = ""
    kernel_release: str = ""


class MigrationState(Model):
    """What the instance says about its last migration."""

    migration_uid: str = ""
    source_node: str = ""
    target_node: str = ""
    failure_reason: str = ""


class VirtualMachineInstanceStatus(Model):
    """How it runs."""

    phase: str = ""
    reason: str = ""
    node_name: str = ""
    conditions: NullableList[Condition] = []
    interfaces: NullableList[InstanceInterface] = []
    guest_os_info: GuestOsInfo | None = field(default=None, name="guestOSInfo")
    migration_state: MigrationState | None = None


class GuestDomain(Model):
    """How large a guest is."""

    cpu: Cpu | None = None
    memory: Memory | None = None


class GuestSpec(Model):
    """What the operator looks at of a guest that runs."""

    domain: GuestDomain = field(default_factory=GuestDomain)


class VirtualMachineInstance(Object):
    """A machine that is on."""

    resource = Resource("kubevirt.io", "v1", "VirtualMachineInstance", "virtualmachineinstances")

    spec: GuestSpec = field(default_factory=GuestSpec)
    status: VirtualMachineInstanceStatus = field(default_factory=VirtualMachineInstanceStatus)


class ClaimSource(Model):
    """A claim in the same namespace."""

    claim_name: str = required(str)
    hotpluggable: bool | None = None


class CloudInitSource(Model):
    """What cloud-init reads; in Secrets, because inline data may have 2048 bytes and is readable by every user who may
    read the machine."""

    secret_ref: LocalObjectReference | None = None
    network_data_secret_ref: LocalObjectReference | None = None


class SysprepSource(Model):
    """What Windows reads at its first start."""

    secret: LocalObjectReference | None = None


class Volume(Model):
    """What is on a disk."""

    name: str = required(str)
    persistent_volume_claim: ClaimSource | None = None
    cloud_init_no_cloud: CloudInitSource | None = None
    sysprep: SysprepSource | None = None


class MultusNetwork(Model):
    """A NetworkAttachmentDefinition, `name` or `namespace/name`."""

    network_name: str = required(str)


class Network(Model):
    """What an interface is on."""

    name: str = required(str)
    pod: Present | None = None
    multus: MultusNetwork | None = None


class SecretSource(Model):
    """A Secret whose values are public keys."""

    secret_name: str = required(str)


class KeySource(Model):
    """Where keys come from."""

    secret: SecretSource | None = None


class AgentPropagation(Model):
    """Keys are written by the guest agent, for these users."""

    users: list[str] = required(list)


class Propagation(Model):
    """How keys get into the guest."""

    qemu_guest_agent: AgentPropagation | None = None


class SshPublicKey(Model):
    """Keys of a Secret."""

    source: KeySource = required(KeySource)
    propagation_method: Propagation = required(Propagation)


class AccessCredential(Model):
    """A way into the guest that can change while it runs."""

    ssh_public_key: SshPublicKey | None = None


class InstanceSpec(Model):
    """What a VirtualMachineInstance is made from."""

    domain: Domain = required(Domain)
    volumes: list[Volume] | None = None
    networks: list[Network] | None = None
    access_credentials: list[AccessCredential] | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    eviction_strategy: str | None = None
    termination_grace_period_seconds: int | None = None
    hostname: str | None = None


class TemplateMeta(Model):
    """Labels and annotations of the instance and of its pod."""

    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class InstanceTemplate(Model):
    """What a machine runs when it is on."""

    metadata: TemplateMeta | None = None
    spec: InstanceSpec = required(InstanceSpec)


class Matcher(Model):
    """An instance type or a preference."""

    name: str | None = None
    kind: str | None = None


class VirtualMachineSpec(Model):
    """A machine, and whether it is on."""

    run_strategy: str = ""
    instancetype: Matcher | None = None
    preference: Matcher | None = None
    template: InstanceTemplate = required(InstanceTemplate)


class StartFailure(Model):
    """How often it failed in a row, and when it is tried again."""

    consecutive_fail_count: int = 0
    retry_after_timestamp: str = ""


class VirtualMachineStatus(Model):
    """What became of it."""

    printable_status: str = ""
    ready: bool = False
    run_strategy: str = ""
    start_failure: StartFailure | None = None
    snapshot_in_progress: str = ""
    restore_in_progress: str = ""
    observed_generation: int = 0
    conditions: NullableList[Condition] = []


class VirtualMachine(Object):
    """A machine that may be off."""

    resource = Resource("kubevirt.io", "v1", "VirtualMachine", "virtualmachines")

    spec: VirtualMachineSpec = required(VirtualMachineSpec)
    status: VirtualMachineStatus = field(default_factory=VirtualMachineStatus)
