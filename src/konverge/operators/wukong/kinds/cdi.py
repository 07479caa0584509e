"""`DataVolume`, cdi.kubevirt.io/v1beta1: a claim, and what it is filled with. Its spec never changes."""

from __future__ import annotations

from konverge.objects import Condition, Model, Object, Resource, field, required
from konverge.objects.kinds.core_v1 import VolumeResourceRequirements
from konverge.objects.model import NullableList
from konverge.operators.wukong.kinds.domain import Present


class FromUrl(Model):
    """Something that is fetched; of S3, an object in a bucket."""

    url: str = required(str)
    secret_ref: str | None = None
    cert_config_map: str | None = None


class FromHttp(FromUrl):
    """A file on a web server."""

    checksum: str | None = None


class FromRegistry(FromUrl):
    """A container image; the address keeps its scheme."""

    pull_method: str | None = None


class FromObject(Model):
    """A claim or a snapshot."""

    namespace: str = required(str)
    name: str = required(str)


class DataVolumeSource(Model):
    """One of these."""

    http: FromHttp | None = None
    registry: FromRegistry | None = None
    s3: FromUrl | None = None
    pvc: FromObject | None = None
    snapshot: FromObject | None = None
    blank: Present | None = None
    upload: Present | None = None


class DataVolumeSourceRef(Model):
    """A DataSource."""

    kind: str = required(str)
    name: str = required(str)
    namespace: str | None = None


class StorageSpec(Model):
    """What is asked for. What is left out, CDI knows for the class; for a file system it adds room."""

    resources: VolumeResourceRequirements | None = None
    storage_class_name: str | None = None
    volume_mode: str | None = None
    access_modes: list[str] = []


class DataVolumeSpec(Model):
    """A claim, and what it is filled with."""

    source: DataVolumeSource | None = None
    source_ref: DataVolumeSourceRef | None = None
    storage: StorageSpec | None = None
    pvc: StorageSpec | None = None
    """As others ask for a claim; ours do it by `storage`."""


class DataVolumeStatus(Model):
    """How far it is."""

    phase: str = ""
    progress: str = ""
    restart_count: int = 0
    claim_name: str = ""
    conditions: NullableList[Condition] = []


class DataVolume(Object):
    """A claim that is filled."""

    resource = Resource("cdi.kubevirt.io", "v1beta1", "DataVolume", "datavolumes")

    spec: DataVolumeSpec = field(default_factory=DataVolumeSpec)
    status: DataVolumeStatus = field(default_factory=DataVolumeStatus)
