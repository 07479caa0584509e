"""The operator: five controllers, what leads to a reconcile of each, and what the command line needs to know.

Objects that a Wukong refers to by name are indexed, so that their change leads to a reconcile.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from konverge.cache.record import Meta, Record
from konverge.cache.store import by_label
from konverge.objects import Object, from_dict, from_json
from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition
from konverge.objects.kinds.core_v1 import Node, PersistentVolumeClaim, Secret, Service
from konverge.objects.kinds.discovery_v1 import EndpointSlice
from konverge.objects.kinds.storage_v1 import StorageClass
from konverge.operators.catalog import Operator
from konverge.operators.wukong import effective_spec, names
from konverge.operators.wukong.addresses import MACHINES_OF, AddressReconciler, addresses_of, machine_named
from konverge.operators.wukong.kinds import (
    DataVolume,
    NetworkAttachmentDefinition,
    NodeNetworkConfigurationPolicy,
    NodeNetworkState,
    VirtualMachine,
    VirtualMachineInstance,
    VirtualMachineInstanceMigration,
    VirtualMachineRestore,
    VirtualMachineSnapshot,
)
from konverge.operators.wukong.options import Options, from_environment, to_environment
from konverge.operators.wukong.protection import policies
from konverge.operators.wukong.quotas import QuotaReconciler, concerned, quota_of, waiting_snapshots
from konverge.operators.wukong.reconciler import WukongReconciler
from konverge.operators.wukong.resource import (
    FINALIZER,
    KINDS,
    AnyTemplate,
    AnyWukong,
    Wukong,
    WukongAddress,
    WukongQuota,
    WukongSnapshot,
    WukongSnapshotSchedule,
)
from konverge.operators.wukong.schedules import SCHEDULES, ScheduleReconciler, schedule_of
from konverge.operators.wukong.snapshots import SnapshotReconciler
from konverge.operators.wukong.spec import WukongSpec
from konverge.operators.wukong.steps.migration import MOVES
from konverge.operators.wukong.steps.nodes import BRIDGES, bridges_of
from konverge.operators.wukong.steps.power import CALLS, MACHINES
from konverge.operators.wukong.templates import resolved_spec
from konverge.runtime import (
    Controller,
    Owns,
    Request,
    Settings,
    Use,
    Watches,
    annotations_changed,
    any_of,
    generation_changed,
    labels_changed,
)
from konverge.runtime.context import Caches

REFERS = "refers"
"""The index of Wukongs by what they refer to: `Secret ns/name`."""


def refers_to(record: Record, meta: Meta) -> Iterable[str]:
    """Everything that a Wukong names, or that is named after it without being owned."""
    obj = from_json(AnyWukong, record.raw)
    try:
        wukong = Wukong(metadata=obj.metadata, spec=from_dict(WukongSpec, resolved_spec(obj)))
    except msgspec.ValidationError:
        return ()
    return [f"{kind} {where or meta.namespace}/{name}" for kind, where, name in _named(wukong)]


def _named(wukong: Wukong) -> Iterable[tuple[str, str, str]]:
    spec = wukong.spec
    for disk in spec.disks:
        claim = effective_spec.claim_name(wukong, disk)
        yield "PersistentVolumeClaim", "", claim
        if effective_spec.source_of(spec, disk) is not None:
            yield "DataVolume", "", claim
    for network in spec.networks:
        namespace, _, name = effective_spec.attachment_name(wukong, network).rpartition("/")
        if name:
            yield "NetworkAttachmentDefinition", namespace, name
    for secret in sorted(effective_spec.secrets_read(spec) | effective_spec.secrets_mounted(spec)):
        yield "Secret", "", secret
    if spec.template is not None:
        yield "WukongTemplate", "", spec.template.name
    if spec.restore_from_snapshot:
        yield "WukongSnapshot", "", spec.restore_from_snapshot


def referred_by(obj: Object, caches: Caches) -> Iterable[Request]:
    """The Wukongs that refer to an object."""
    lister, meta = caches.lister(AnyWukong), obj.metadata
    value = f"{type(obj).resource.kind} {meta.namespace}/{meta.name}"
    return () if lister is None else lister.keys_by_index(REFERS, value)


_SETTINGS = Settings(
    workers=32, timeout=60.0, max_retries=0, max_delay=60.0, rate_limiter_qps=100.0, rate_limiter_burst=500
)
"""Each new machine comes back at once twice: five hundred of them at a time are nothing to slow down for."""


def _of_instance(instance: VirtualMachineInstance) -> Iterable[Request]:
    """An instance belongs to its machine, and that to the Wukong that its label names."""
    owner = instance.metadata.labels.get(names.LABEL)
    return (Request(instance.metadata.namespace, owner),) if owner else ()


def _of_move(move: VirtualMachineInstanceMigration) -> Iterable[Request]:
    """Whoever asked for it: an instance has the name of its machine, and that ends in one way."""
    wukong = move.spec.vmi_name.removesuffix(names.machine(""))
    return (Request(move.metadata.namespace, wukong),) if wukong and wukong != move.spec.vmi_name else ()


def moved_instance(record: Record, meta: Meta) -> Iterable[str]:
    """Index of migrations: the instance that each moves."""
    return (f"{meta.namespace}/{from_json(VirtualMachineInstanceMigration, record.raw).spec.vmi_name}",)


def _lost_ours(old: AnyWukong | None, new: AnyWukong | None) -> bool:
    """Another client took our finalizer or our status off it: no other event would bring them back."""
    if old is None or new is None or new.metadata.deletion_timestamp:
        return False
    finalizer = FINALIZER in old.metadata.finalizers and FINALIZER not in new.metadata.finalizers
    return finalizer or new.status.observed_generation < old.status.observed_generation


def _on_bridge(policy: NodeNetworkConfigurationPolicy, caches: Caches) -> Iterable[Request]:
    lister = caches.lister(AnyWukong)
    return () if lister is None else lister.keys_by_index(BRIDGES, policy.metadata.name)


# What is watched and used of nodes, where the operator may change them at all.
_NODE_WATCHES = (Watches(NodeNetworkConfigurationPolicy, lookup=_on_bridge, optional=True),)
_NODE_USES: tuple[Use[Any], ...] = (
    Use(Node, cached=True),
    Use(NodeNetworkState, cached=True, optional=True),
    Use(NodeNetworkConfigurationPolicy, "apply", "delete", optional=True),
)


def controllers(options: Options | None = None, *, namespaces: tuple[str, ...] = ()) -> list[Controller[Any]]:
    """The controllers of the operator; without options, as the environment says."""
    options = options or from_environment()
    return [
        Controller(
            AnyWukong,
            WukongReconciler(options),
            name="wukong",
            # The kinds of others are optional: a cluster may not have them, or not yet. Each says so once.
            owns=[
                Owns(VirtualMachine, optional=True),
                Owns(VirtualMachineRestore, optional=True),
                Owns(VirtualMachineInstanceMigration, optional=True),
                Owns(DataVolume, optional=True),
                Owns(NetworkAttachmentDefinition, optional=True),
                PersistentVolumeClaim,
                Secret,
                Service,
            ],
            watches=[
                Watches(VirtualMachineInstance, requests=_of_instance),
                Watches(VirtualMachineInstanceMigration, requests=_of_move),
                Watches(DataVolume, lookup=referred_by),
                Watches(NetworkAttachmentDefinition, lookup=referred_by),
                Watches(PersistentVolumeClaim, lookup=referred_by),
                Watches(Secret, lookup=referred_by),
                Watches(WukongSnapshot, lookup=referred_by),
                # `helm upgrade` installs no definitions
                Watches(AnyTemplate, lookup=referred_by, optional=True),
                Watches(WukongQuota, lookup=concerned, optional=True),
                *(_NODE_WATCHES if options.node_networks else ()),
            ],
            uses=[
                Use(StorageClass, cached=True),
                Use(VirtualMachineSnapshot, cached=True, optional=True),
                Use(CustomResourceDefinition, "get"),
                Use(AnyWukong, "patch"),
                Use(VirtualMachineInstance, "delete", optional=True),
                Use(CALLS, "update", subresource="pause"),
                Use(CALLS, "update", subresource="unpause"),
                Use(MACHINES, "update", subresource="restart"),
                *(_NODE_USES if options.node_networks else ()),
            ],
            when=any_of(generation_changed, annotations_changed, labels_changed, _lost_ours),
            namespaces=namespaces,
            indexes={
                AnyWukong: {REFERS: refers_to, BRIDGES: bridges_of},
                VirtualMachineInstanceMigration: {MOVES: moved_instance},
            },
            settings=_SETTINGS,
        ),
        Controller(
            WukongSnapshot,
            SnapshotReconciler(options),
            name="wukongsnapshot",
            owns=[Owns(VirtualMachineSnapshot, optional=True)],
            watches=[Watches(WukongQuota, lookup=waiting_snapshots, optional=True)],
            uses=[Use(AnyWukong, cached=True), Use(VirtualMachine, cached=True, optional=True)],
            namespaces=namespaces,
            settings=_SETTINGS,
        ),
        Controller(
            WukongSnapshotSchedule,
            ScheduleReconciler(options),
            name="wukongsnapshotschedule",
            watches=[Watches(WukongSnapshot, requests=schedule_of)],
            uses=[
                Use(WukongSnapshotSchedule, optional=True),  # `helm upgrade` installs no definitions
                Use(WukongSnapshot, "get", "create", "delete"),
                Use(AnyWukong, cached=True),
                Use(VirtualMachineSnapshot, cached=True, optional=True),
            ],
            namespaces=namespaces,
            indexes={WukongSnapshot: {SCHEDULES: by_label(names.SCHEDULE)}},
            settings=_SETTINGS,
        ),
        Controller(
            WukongQuota,
            QuotaReconciler(options),
            name="wukongquota",
            watches=[Watches(AnyWukong, lookup=quota_of), Watches(WukongSnapshot, lookup=quota_of)],
            uses=[
                Use(WukongQuota, optional=True),
                Use(AnyWukong, "get"),
                Use(WukongSnapshot, "get"),
                Use(PersistentVolumeClaim, cached=True),
                Use(VirtualMachineInstance, cached=True, optional=True),
            ],
            namespaces=namespaces,
            settings=_SETTINGS,
        ),
        Controller(
            WukongAddress,
            AddressReconciler(options),
            name="wukongaddress",
            owns=[Service],
            watches=[Watches(AnyWukong, lookup=addresses_of)],
            uses=[Use(WukongAddress, optional=True), Use(Service, "get"), Use(EndpointSlice, "list", cached=False)],
            namespaces=namespaces,
            indexes={WukongAddress: {MACHINES_OF: machine_named}},
            settings=_SETTINGS,
        ),
    ]


_SAMPLES = ("smallest", "ubuntu", "static", "windows", "precious", "template", "quota", "address")

OPERATOR = Operator(
    name="wukong",
    kinds=list(KINDS),
    controllers=controllers,
    policies=policies,
    environment=to_environment,
    samples=tuple(f"samples/{name}.yaml" for name in _SAMPLES),
)
