"""The VirtualMachine: processors, memory, disks and networks of a Wukong, as KubeVirt declares them.

Processors are counted in sockets, since only these can be added to a running machine. Volumes are claims, not
DataVolumes: a restore puts the data back into them. What KubeVirt and others fill in (the board, the architecture, a
plugged-in volume) is not in it, so an apply leaves it alone.

The Services of `spec.expose` reach the machine by the label that its pod has.
"""

from __future__ import annotations

from konverge.objects import LabelSelector
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
from konverge.operators.wukong.children.cloudinit import wants_network_data
from konverge.operators.wukong.children.hardware import domain_for
from konverge.operators.wukong.children.metadata import metadata
from konverge.operators.wukong.effective_spec import (
    all_users,
    attached,
    attachment_name,
    bootstrap_type,
    claim_name,
    is_pod_network,
    keys_by_agent,
    run_strategy,
    user_data_secret,
)
from konverge.operators.wukong.kinds import machines
from konverge.operators.wukong.kinds.domain import Present
from konverge.operators.wukong.kinds.machines import InstanceSpec, InstanceTemplate, TemplateMeta, VirtualMachine
from konverge.operators.wukong.resource import Wukong
from konverge.operators.wukong.spec import Matcher, WukongSpec
from konverge.operators.wukong.spec_guest import Expose


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
        if is_pod_network(network)
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
