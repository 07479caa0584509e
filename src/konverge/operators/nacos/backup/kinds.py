"""The kinds of backups.

What a backup is of, and where it goes, cannot change: create another one.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from konverge.objects import (
    Column,
    Condition,
    CustomResource,
    ListType,
    Maximum,
    MaxLength,
    Minimum,
    MinLength,
    Model,
    Pattern,
    Rule,
    field,
)
from konverge.operators.nacos.backup.storage import RestoreSource, S3Storage, Storage
from konverge.operators.nacos.content.kinds import fixed
from konverge.operators.nacos.resource import GROUP, LONGEST_NAME
from konverge.operators.timetable import NO_ZONE, Age

Phase = Literal["", "Pending", "Running", "Completed", "Failed"]
Method = Literal["Database", "Configuration"]
COMPLETED: Literal["Completed"] = "Completed"
FAILED: Literal["Failed"] = "Failed"
TransferImage = Annotated[str, Pattern(r"^\S*$"), MaxLength(512)]
LONGEST_SCHEDULE = 200
"""Characters of the name of a schedule: a start is added to it."""


class LocalNacosRef(Model):
    """A Nacos in the same namespace: the Secrets of its database are there."""

    name: Annotated[str, MinLength(1), MaxLength(LONGEST_NAME)]
    """The name of the Nacos."""


class BackupSettings(Model):
    """How a backup is made, by itself or by a schedule."""

    nacos_ref: LocalNacosRef
    """The Nacos that is backed up."""
    method: Method = "Database"
    """Database: a dump of its database in PostgreSQL or MySQL, by a program of that database. Configuration: namespaces
    and configurations by the API of the servers, whatever their database."""
    storage: Storage
    """Where the backup is stored."""
    image: Annotated[str, Pattern(r"^\S*$"), MaxLength(512)] = ""
    """The image of the Job, with the client programs of the database, not older than the server. Empty: postgres:17, or
    mysqlInitImage of the Nacos, or mysql:8.4. For the method Configuration the image of Konverge; empty: konverge, in
    the version of the operator."""
    transfer_image: TransferImage = ""
    """The image of Konverge, which carries the data to and from s3. Empty: konverge, in the version of the operator."""
    timeout_seconds: Annotated[int, Minimum(60), Maximum(604800)] = 3600
    """Seconds that one attempt may take."""


class NacosBackupSpec(
    BackupSettings,
    rules=[
        fixed("nacosRef", "the Nacos"),
        fixed("method", "the method"),
        fixed("storage", "the storage"),
        fixed("image", "the image"),
        fixed("timeoutSeconds", "the time"),
        fixed("transferImage", "the image"),
    ],
):
    """What to back up, and where to."""

    deletion_policy: Literal["Retain", "Delete"] = "Retain"
    """What becomes of the stored data when the resource is deleted."""


class JobStatus(Model):
    """What resources say whose work a Job does."""

    phase: Phase = ""
    """Pending, Running, Completed or Failed."""
    observed_generation: int = 0
    """The generation of the spec that was acted upon."""
    conditions: Annotated[list[Condition], ListType("map", "type")] = []
    """Ready and Complete: it is done; Failed: it will not be."""
    start_time: str = ""
    """When the work began."""
    completion_time: str = ""
    """When it was done, or given up."""
    attempt: int = 0
    """The number of the Job: another one is made when a Job is lost before its result was read."""
    job_name: str = ""
    """The Job at work, or the last one."""
    job_uid: str = ""
    """Its uid."""
    image: str = ""
    """Its image."""


class NacosBackupStatus(JobStatus):
    """The state of a backup."""

    nacos_uid: str = ""
    """The uid of the Nacos that was backed up."""
    nacos_version: str = ""
    """The version of its servers."""
    engine: str = ""
    """The kind of its database."""
    schema: str = ""
    """The schema of its database: until-2.4 or since-2.5."""
    location: str = ""
    """Where the data is stored: pvc://<claim>/<path> or s3://<bucket>/<key>."""
    path: str = ""
    """The path of the data in its volume, or its key in the bucket."""
    size: int = 0
    """The size of the stored data, in bytes."""
    sha256: str = ""
    """Its digest."""


class NacosBackup(
    CustomResource[NacosBackupSpec, NacosBackupStatus],
    group=GROUP,
    version="v1alpha1",
    plural="nacosbackups",
    columns=[
        Column("Nacos", ".spec.nacosRef.name"),
        Column("Method", ".spec.method"),
        Column("Phase", ".status.phase"),
        Column("Size", ".status.size"),
        Column("Completed", ".status.completionTime", type="date"),
        Column("Reason", ".status.conditions[?(@.type=='Ready')].reason", type="string"),
        Column("Age", ".metadata.creationTimestamp", type="date"),
    ],
):
    """A backup of a Nacos."""


class Retention(Model):
    """Which of its own backups a schedule deletes. The newest that is complete is never among them."""

    keep_last: Annotated[int, Minimum(1), Maximum(10000)] | None = None
    """How many that are complete are kept; without: all."""
    max_age: Age | None = None
    """How old they get: 36h, 30d, 8w; without: any age."""
    failed_limit: Annotated[int, Minimum(0), Maximum(1000)] = 3
    """How many that failed are kept."""


class NacosBackupScheduleSpec(BackupSettings, rules=[fixed("nacosRef", "the Nacos")]):
    """When to back up, and what to keep."""

    schedule: Annotated[str, MinLength(1), MaxLength(256), Rule("!self.contains('TZ=')", message=NO_ZONE)]
    """As that of a CronJob: five fields, @daily, @every 6h."""
    time_zone: Annotated[str, Pattern(r"^[A-Za-z0-9][A-Za-z0-9._+/-]*$"), MaxLength(64)] | None = None
    """A name of the IANA database, such as Asia/Shanghai; without: UTC."""
    suspend: bool = False
    """Neither make backups nor delete any."""
    immediate: bool = False
    """Make one as soon as the schedule is created, too."""
    starting_deadline_seconds: Annotated[int, Minimum(10)] | None = None
    """How late a backup may be made that was missed; without: at any time."""
    retention: Retention = field(default_factory=Retention)
    """What is deleted again."""
    deletion_policy: Literal["Retain", "Delete"] = "Delete"
    """The deletionPolicy of its backups: with Delete the stored data goes with them."""


class NacosBackupScheduleStatus(Model):
    """The state of a schedule."""

    observed_generation: int = 0
    """The generation of the spec that was acted upon."""
    conditions: Annotated[list[Condition], ListType("map", "type")] = []
    """Ready: it makes backups, and the last one did not fail."""
    last_schedule_time: str = ""
    """The last start that has its backup."""
    last_backup: str = ""
    """The newest backup."""
    last_successful_time: str = ""
    """When a backup was last complete."""
    next_schedule_time: str = ""
    """The next start."""
    backups: int = 0
    """How many are complete."""


class NacosBackupSchedule(
    CustomResource[NacosBackupScheduleSpec, NacosBackupScheduleStatus],
    group=GROUP,
    version="v1alpha1",
    plural="nacosbackupschedules",
    columns=[
        Column("Nacos", ".spec.nacosRef.name"),
        Column("Schedule", ".spec.schedule"),
        Column("Suspend", ".spec.suspend"),
        Column("Last", ".status.lastSuccessfulTime", type="date"),
        Column("Next", ".status.nextScheduleTime"),
        Column("Backups", ".status.backups"),
        Column("Ready", ".status.conditions[?(@.type=='Ready')].status", type="string"),
        Column("Reason", ".status.conditions[?(@.type=='Ready')].reason", type="string"),
        Column("Age", ".metadata.creationTimestamp", type="date"),
    ],
    rules=[
        Rule(
            f"size(self.metadata.name) <= {LONGEST_SCHEDULE}",
            message=f"the name becomes part of those of its backups: at most {LONGEST_SCHEDULE} characters",
        )
    ],
):
    """Backups of a Nacos by the clock."""


class BackupRef(Model):
    """A backup in the same namespace."""

    name: Annotated[str, MinLength(1), MaxLength(253)]
    """The name of the NacosBackup."""


def _fixed_optional(path: str, what: str) -> Meta:
    """As `fixed`, for a field that may be missing."""
    both = f"(!has(self.{path}) || self.{path} == oldSelf.{path})"
    message = f"{what} cannot change; create another resource, and delete this one"
    return Rule(f"has(self.{path}) == has(oldSelf.{path}) && {both}", message=message, field_path=f".{path}")


class NacosRestoreSpec(
    Model,
    rules=[
        Rule(
            "has(self.backupRef) != has(self.source)",
            message="name what is restored: either a NacosBackup (backupRef) or the place of its data (source)",
        ),
        fixed("nacosRef", "the Nacos"),
        _fixed_optional("backupRef", "the backup"),
        _fixed_optional("source", "the source"),
        fixed("transferImage", "the image"),
        fixed("overwrite", "overwrite"),
        fixed("image", "the image"),
        fixed("timeoutSeconds", "the time"),
    ],
):
    """What to restore, and into which Nacos."""

    nacos_ref: LocalNacosRef
    """The Nacos whose database is replaced. Its servers are stopped meanwhile."""
    backup_ref: BackupRef | None = None
    """The backup, of this Nacos or of another one."""
    source: RestoreSource | None = None
    """The place of the data of a backup that has no NacosBackup here. Its manifest is read before anything is done."""
    overwrite: bool = False
    """Whether a database that holds namespaces or configurations is replaced; else that is refused."""
    image: Annotated[str, Pattern(r"^\S*$"), MaxLength(512)] = ""
    """The image of the Job, with the client programs of the database. Empty: as for backups."""
    transfer_image: TransferImage = ""
    """The image of Konverge, which reads manifests, and carries the data from s3. Empty: konverge, in the version of
    the operator."""
    timeout_seconds: Annotated[int, Minimum(60), Maximum(604800)] = 3600
    """Seconds that the Job may take."""


class NacosRestoreStatus(JobStatus):
    """The state of a restore."""

    step: Literal["", "Stopping", "Restoring", "Starting"] = ""
    """What is being done: servers stop, the Job works, servers start."""
    nacos_uid: str = ""
    """The uid of the Nacos."""
    backup_uid: str = ""
    """The uid of the backup."""
    method: Method = "Database"
    """The method of the backup."""
    engine: str = ""
    """The kind of the database."""
    claim_name: str = ""
    """The PersistentVolumeClaim with the data; empty: it is in a bucket."""
    s3: S3Storage | None = None
    """The bucket with the data."""
    path: str = ""
    """Its path in the volume, or its key in the bucket."""
    sha256: str = ""
    """The digest that it must have."""
    touched: bool = False
    """Whether a restore that failed has changed the database."""


class NacosRestore(
    CustomResource[NacosRestoreSpec, NacosRestoreStatus],
    group=GROUP,
    version="v1alpha1",
    plural="nacosrestores",
    columns=[
        Column("Nacos", ".spec.nacosRef.name"),
        Column("Backup", ".spec.backupRef.name"),
        Column("Phase", ".status.phase"),
        Column("Step", ".status.step"),
        Column("Reason", ".status.conditions[?(@.type=='Ready')].reason", type="string"),
        Column("Age", ".metadata.creationTimestamp", type="date"),
    ],
):
    """A restore of a backup into a Nacos."""


KINDS: tuple[type[Any], ...] = (NacosBackup, NacosBackupSchedule, NacosRestore)
