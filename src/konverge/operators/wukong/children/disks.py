"""Disks: a DataVolume where there is something to fill it with, else a plain claim."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from konverge.objects import ObjectMeta, Quantity
from konverge.objects.kinds.core_v1 import (
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    VolumeResourceRequirements,
)
from konverge.operators.wukong import names
from konverge.operators.wukong.children import metadata
from konverge.operators.wukong.effective_spec import source_of
from konverge.operators.wukong.kinds.cdi import (
    DataVolume,
    DataVolumeSource,
    DataVolumeSourceRef,
    DataVolumeSpec,
    FromHttp,
    FromObject,
    FromRegistry,
    FromUrl,
    StorageSpec,
)
from konverge.operators.wukong.kinds.domain import Present
from konverge.operators.wukong.ownership import adoption
from konverge.operators.wukong.resource import Wukong
from konverge.operators.wukong.spec_disks import Disk, DiskSource
from konverge.runtime.owners import controller_reference


def claim_for(wukong: Wukong, disk: Disk) -> PersistentVolumeClaim:
    """The claim of a disk that begins empty."""
    return PersistentVolumeClaim(
        metadata=_metadata(wukong, disk),
        spec=PersistentVolumeClaimSpec(
            access_modes=list(disk.access_modes) or ["ReadWriteOnce"],
            volume_mode=disk.volume_mode,
            storage_class_name=disk.storage_class_name,
            resources=_requests(disk.size),
        ),
    )


def data_volume_for(wukong: Wukong, disk: Disk) -> DataVolume:
    """The DataVolume of a disk that begins with something. CDI knows which modes a class can do."""
    source = source_of(wukong.spec, disk)
    if source is None:
        raise ValueError(f"disk {disk.name} has no source: its claim is a plain one")
    spec = DataVolumeSpec(
        storage=StorageSpec(
            resources=_requests(disk.size),
            storage_class_name=disk.storage_class_name,
            volume_mode=disk.volume_mode,
            access_modes=list(disk.access_modes),
        )
    )
    if source.data_source is not None:
        ref = source.data_source
        spec.source_ref = DataVolumeSourceRef(kind="DataSource", name=ref.name, namespace=ref.namespace)
    else:
        spec.source = _source(wukong.metadata.namespace, disk, source)
    return DataVolume(metadata=_metadata(wukong, disk), spec=spec)


def _metadata(wukong: Wukong, disk: Disk) -> ObjectMeta:
    """With whom it belongs to, in the object itself: a disk that is kept has no owner."""
    meta = metadata(wukong, names.claim(wukong.metadata.name, disk.name))
    meta.annotations = adoption(wukong.metadata.name)
    return meta


def marks_for(wukong: Wukong, disk: Disk, request: Quantity | None, *, owned: bool) -> PersistentVolumeClaim:
    """What is written to the claim of a DataVolume: its request, the requested size, and whose it is.

    CDI controls it (apply this with `own=False`). Where it does so no longer, it is to go with the Wukong: `owned`.
    A plain claim grows by `claim_for` of the larger size.
    """
    place = wukong.metadata
    size = {names.REQUESTED_SIZE: disk.size} if disk.size is not None else {}
    meta = ObjectMeta(
        name=names.claim(place.name, disk.name), namespace=place.namespace, annotations=size | adoption(place.name)
    )
    if owned:
        owner = controller_reference(wukong)
        owner.controller = None
        meta.owner_references = [owner]
    resources = None if request is None else _requests(str(request))
    return PersistentVolumeClaim(metadata=meta, spec=PersistentVolumeClaimSpec(resources=resources))


def grown(request: Quantity, asked: Quantity, desired: Quantity) -> Quantity:
    """What a claim must ask for so that a disk has the desired size, where it asked for `request` to have `asked`.

    CDI makes claims larger than the disk, by what a file system takes for itself: in proportion to the disk.

    >>> grown(Quantity("11Gi"), Quantity("10Gi"), Quantity("20Gi"))
    Quantity('22Gi')
    """
    share = request.fraction / asked.fraction if asked.fraction and request > asked else Fraction(1)
    return desired if share == 1 else Quantity.of(ceil(desired.fraction * share), 0, desired.format)


def _requests(size: str | None) -> VolumeResourceRequirements:
    return VolumeResourceRequirements(requests={"storage": Quantity(size)} if size else {})


def _source(namespace: str, disk: Disk, source: DiskSource) -> DataVolumeSource:
    secret = disk.secret_ref
    if source.http is not None:
        http = source.http
        return DataVolumeSource(
            http=FromHttp(url=http.url, secret_ref=secret, cert_config_map=http.cert_config_map, checksum=disk.checksum)
        )
    if source.registry is not None:
        url, certificates = source.registry.url, source.registry.cert_config_map
        method = source.registry.pull_method or "pod"
        fetched = FromRegistry(url=url, secret_ref=secret, cert_config_map=certificates, pull_method=method)
        return DataVolumeSource(registry=fetched)
    if source.s3 is not None:
        s3 = source.s3
        return DataVolumeSource(s3=FromUrl(url=s3.url, secret_ref=secret, cert_config_map=s3.cert_config_map))
    if source.pvc is not None:
        return DataVolumeSource(pvc=FromObject(namespace=namespace, name=source.pvc.name))
    if source.snapshot is not None:
        return DataVolumeSource(snapshot=FromObject(namespace=namespace, name=source.snapshot.name))
    return DataVolumeSource(upload=Present()) if source.upload is not None else DataVolumeSource(blank=Present())
