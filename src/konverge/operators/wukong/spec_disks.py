"""The disks of a virtual machine: `spec.disks[]`.

`image` is the original's shorthand for a source; without either, a disk is an empty claim. What a disk is filled with
and where it lies cannot change later, so the definition refuses that at once; its size can only grow.
"""

from __future__ import annotations

from typing import Annotated, Literal

from konverge.objects import Description, ListType, MaxItems, MaxLength, Model, Pattern, Rule
from konverge.operators.wukong.names import RESERVED_DISKS
from konverge.operators.wukong.rules import check, given, rule, unchanged
from konverge.operators.wukong.texts import TOO_SMALL, Label, ObjectName, Size, Url, is_too_small

Bus = Literal["virtio", "scsi", "sata", "usb"]
DeletePolicy = Literal["Delete", "Retain"]
MOST_DISKS = 64
SOURCE_CHANGED = "what a disk was made from cannot change: add another disk"


class HttpSource(Model):
    """A file on a web server."""

    url: Annotated[str, Pattern(r"^https?://\S+$"), MaxLength(2048), Description("Its address.")]
    cert_config_map: Annotated[ObjectName | None, Description("A ConfigMap with the certificates to trust.")] = None


class RegistrySource(Model):
    """A container image with a disk in /disk."""

    url: Annotated[
        str,
        Pattern(r"^(docker|oci-archive)://\S+$"),
        MaxLength(2048),
        Description("Its address, with docker:// or oci-archive://."),
    ]
    cert_config_map: Annotated[ObjectName | None, Description("A ConfigMap with the certificates to trust.")] = None
    pull_method: Annotated[Literal["pod", "node"] | None, Description("Whether CDI's pod fetches it, or the node.")] = (
        None
    )


class S3Source(Model):
    """An object in a bucket."""

    url: Annotated[str, Pattern(r"^https?://\S+$"), MaxLength(2048), Description("Its address.")]
    cert_config_map: Annotated[ObjectName | None, Description("A ConfigMap with the certificates to trust.")] = None


class LocalSource(Model):
    """A claim or a snapshot of one, in the same namespace: it is copied."""

    name: Annotated[ObjectName, Description("Its name.")]


class DataSourceRef(Model):
    """A DataSource of CDI: the handle of a golden image. Without a namespace, in the same one."""

    name: Annotated[ObjectName, Description("Its name.")]
    namespace: Annotated[Label | None, Description("Where it is; without, in the same namespace.")] = None


class Nothing(Model):
    """That it is there says it all."""


SOURCES = ("http", "registry", "s3", "pvc", "snapshot", "dataSource", "blank", "upload")


class DiskSource(
    Model,
    rules=[
        rule(
            f"[{', '.join(f'has(self.{name})' for name in SOURCES)}].filter(given, given).size() == 1",
            lambda source: len(given(source, SOURCES)) == 1,
            f"give one of {', '.join(SOURCES)}",
        )
    ],
):
    """What a disk is filled with."""

    http: Annotated[HttpSource | None, Description("A file on a web server.")] = None
    registry: Annotated[RegistrySource | None, Description("A container image with a disk in /disk.")] = None
    s3: Annotated[S3Source | None, Description("An object in a bucket.")] = None
    pvc: Annotated[LocalSource | None, Description("A copy of a claim in the same namespace.")] = None
    snapshot: Annotated[LocalSource | None, Description("A copy of a VolumeSnapshot in the same namespace.")] = None
    data_source: Annotated[DataSourceRef | None, Description("A copy of a golden image, by CDI's DataSource.")] = None
    blank: Annotated[Nothing | None, Description("Nothing: CDI makes the claim, and formats it.")] = None
    upload: Annotated[Nothing | None, Description("What a user uploads: virtctl image-upload.")] = None


OF_A_NEW_CLAIM = ("size", "storageClassName", "image", "source", "volumeMode", "accessModes", "checksum", "secretRef")
_ANY_OF_A_NEW_CLAIM = " || ".join(f"has(self.{field})" for field in OF_A_NEW_CLAIM).replace(
    "has(self.accessModes)", "(has(self.accessModes) && self.accessModes.size() > 0)"
)
_SCHEMES = ("http://", "https://", "docker://", "oci-archive://")
_BY_HTTP = "(has(self.image) && self.image.matches('^https?://')) || (has(self.source) && has(self.source.http))"
_FETCHED = (
    "has(self.image) || (has(self.source) && "
    "(has(self.source.http) || has(self.source.registry) || has(self.source.s3)))"
)


class TemplateDisk(
    Model,
    rules=[
        check(lambda disk: disk.size is None or not is_too_small(disk.size), TOO_SMALL, ".size"),
        rule(
            f"!has(self.existingClaim) || !({_ANY_OF_A_NEW_CLAIM})",
            lambda disk: disk.existing_claim is None or not given(disk, OF_A_NEW_CLAIM),
            f"an existing claim is used as it is: leave {', '.join(OF_A_NEW_CLAIM)} out",
        ),
        rule(
            "!has(self.existingClaim) || !has(self.deletePolicy) || self.deletePolicy == 'Retain'",
            lambda disk: disk.existing_claim is None or disk.delete_policy != "Delete",
            "an existing claim is never deleted",
            ".deletePolicy",
        ),
        rule(
            f"!(self.name in {list(RESERVED_DISKS)})",
            lambda disk: disk.name not in RESERVED_DISKS,
            "is the name of a disk that the operator adds",
            ".name",
        ),
        rule(
            "has(self.existingClaim) || has(self.size)",
            lambda disk: disk.existing_claim is not None or disk.size is not None,
            "give the disk a size",
            ".size",
        ),
        rule(
            "!has(self.image) || !has(self.source)",
            lambda disk: disk.image is None or disk.source is None,
            "give an image or a source, not both",
        ),
        rule(
            "!has(self.image) || !self.image.contains('://') || "
            f"{list(_SCHEMES)}.exists(it, self.image.startsWith(it))",
            lambda disk: "://" not in (disk.image or "") or disk.image.startswith(_SCHEMES),
            "an image comes by http://, https://, docker:// or oci-archive://; see source for more",
            ".image",
        ),
        rule(
            f"!has(self.checksum) || {_BY_HTTP}",
            lambda disk: disk.checksum is None or disk.by_http,
            "only what comes by http has a checksum",
            ".checksum",
        ),
        rule(
            f"!has(self.secretRef) || {_FETCHED}",
            lambda disk: disk.secret_ref is None or disk.fetched,
            "a Secret is needed to fetch something: http, registry or s3",
            ".secretRef",
        ),
        rule(
            "!self.hotpluggable || !has(self.bus) || self.bus in ['scsi', 'virtio']",
            lambda disk: not disk.hotpluggable or disk.bus in (None, "scsi", "virtio"),
            "a disk that is plugged in later is on scsi or virtio",
            ".bus",
        ),
        rule(
            "!self.cdrom || has(self.image) || has(self.source) || has(self.existingClaim)",
            lambda disk: not disk.cdrom or disk.is_filled,
            "say what is in the CD-ROM: an image, a source or an existingClaim",
            ".cdrom",
        ),
        rule(
            "!self.cdrom || !self.hotpluggable && (!has(self.bus) || self.bus != 'virtio')",
            lambda disk: not disk.cdrom or not (disk.hotpluggable or disk.bus == "virtio"),
            "a CD-ROM is on sata, scsi or usb, and is not plugged in later",
            ".cdrom",
        ),
    ],
):
    """A disk that is not there yet: in a template, anything about it can change."""

    name: Annotated[Label, Description("The claim is called after the machine and this.")]
    size: Annotated[Size | None, Description("It can only grow.")] = None
    storage_class_name: Annotated[ObjectName | None, Description("Without: the cluster's default class.")] = None
    boot: Annotated[bool, Description("The disk that the machine starts from; without any, the first.")] = False
    image: Annotated[Url | None, Description("A source in short: an address by http or https, or in a registry.")] = (
        None
    )
    source: Annotated[DiskSource | None, Description("What the disk is filled with; without, it is empty.")] = None
    cdrom: Annotated[
        bool, Description("A CD-ROM: the machine starts from it while its boot disk is empty, to install from an ISO.")
    ] = False
    bus: Annotated[Bus | None, Description("Without: virtio, or what suits the guest.")] = None
    volume_mode: Annotated[Literal["Filesystem", "Block"] | None, Description("Without: what suits the class.")] = None
    access_modes: Annotated[
        list[Literal["ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany", "ReadWriteOncePod"]],
        MaxItems(4),
        ListType("set"),
        Description("Without: what suits the class. A machine moves to another node only with ReadWriteMany."),
    ] = []
    serial: Annotated[
        Annotated[str, Pattern(r"^[A-Za-z0-9_.+-]+$"), MaxLength(36)] | None,
        Description("By which the guest knows the disk, whatever its place is."),
    ] = None
    delete_policy: Annotated[
        DeletePolicy | None,
        Description("What becomes of the data when the machine is deleted; without, as the machine says."),
    ] = None
    hotpluggable: Annotated[bool, Description("Plugged into a running machine, where KubeVirt can.")] = False
    existing_claim: Annotated[
        ObjectName | None, Description("A claim that is there already: it is used as it is, and never deleted.")
    ] = None
    checksum: Annotated[
        Annotated[str, Pattern(r"^(md5|sha1|sha256|sha512):[0-9a-fA-F]+$"), MaxLength(136)] | None,
        Description("Of what comes by http: its sort, a colon, and the sum."),
    ] = None
    secret_ref: Annotated[ObjectName | None, Description("The Secret with which an image is fetched.")] = None

    @property
    def is_filled(self) -> bool:
        """Whether it says itself what is on it."""
        return bool(self.image or self.source or self.existing_claim)

    @property
    def by_http(self) -> bool:
        return (self.image or "").startswith(_SCHEMES[:2]) or (self.source is not None and self.source.http is not None)

    @property
    def fetched(self) -> bool:
        return self.image is not None or (
            self.source is not None and bool(given(self.source, ("http", "registry", "s3")))
        )


class Disk(
    TemplateDisk,
    rules=[
        Rule(
            "!has(self.size) || !has(oldSelf.size) || !isQuantity(self.size) || "
            "quantity(self.size).compareTo(quantity(oldSelf.size)) >= 0",
            message="a disk cannot shrink",
            field_path=".size",
        ),
        Rule(
            unchanged("storageClassName"),
            message="a disk cannot move to another class: add another disk",
            field_path=".storageClassName",
        ),
        Rule(unchanged("image", "source", "existingClaim"), message=SOURCE_CHANGED),
    ],
):
    """A disk: an imported image, a copy, an empty claim, or a claim that is there already."""
