"""Where a `Nacos` keeps its data: databases, their schema, and volumes."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from konverge.objects import Maximum, MaxLength, Minimum, Model, ObjectMeta, Pattern, Quantity, Rule, field
from konverge.objects.kinds.core_v1 import EmptyDirVolumeSource, HostPathVolumeSource, PersistentVolumeClaimSpec
from konverge.operators.nacos.spec.references import CredentialsRef, SecretKeyRef
from konverge.operators.nacos.spec_amounts import storage_rules

Port = Annotated[str, Pattern(r"^[0-9]{1,5}$"), MaxLength(5)]
"""Ports of databases are texts in existing resources."""


def _in_range(port: str) -> Meta:
    """The schema checks the form of a port that is a text, but not its size."""
    size = f"int(self.{port}) >= 1 && int(self.{port}) <= 65535"
    rule = f"!self.{port}.matches('^[0-9]{{1,5}}$') || ({size})"
    return Rule(rule, message="a port is a number from 1 to 65535", field_path=f".{port}")


TlsMode = Literal["disable", "prefer", "require", "verify-ca", "verify-full"]
VERIFYING: frozenset[TlsMode] = frozenset(("verify-ca", "verify-full"))
"""The modes that need an authority."""


class DatabaseTls(Model):
    """How connections to a database are protected; modes as libpq has them."""

    mode: TlsMode | None = None
    """How the connection is protected and what of the server's certificate is checked. Left out: verify-full with a
    caSecretRef, else prefer."""
    ca_secret_ref: SecretKeyRef | None = None
    """The certificate authority of the server, for verify-ca and verify-full; left out: those that images trust."""

    @property
    def mode_in_force(self) -> TlsMode:
        return self.mode or ("verify-full" if self.ca_secret_ref is not None else "prefer")

    @property
    def verifies(self) -> bool:
        return self.mode_in_force in VERIFYING


class MysqlTls(
    DatabaseTls,
    rules=[
        Rule(
            "!has(self.caSecretRef) || self.caSecretRef.name != ''",
            message="name the Secret with the certificate authority",
            field_path=".caSecretRef.name",
        )
    ],
):
    """How connections to MySQL are protected. The drivers compare the certificate with the host, and no other name."""


class Database(Model, rules=[_in_range("mysqlPort")]):
    """Where Nacos keeps its configurations. PostgreSQL has a block of its own, `postgres`."""

    type: Literal["", "embedded", "mysql", "postgresql", "postgres"] | None = None
    """Which database: embedded, mysql or postgresql."""
    mysql_host: str = ""
    """The host of the MySQL server."""
    mysql_port: Port = "3306"
    """Its port, as text."""
    mysql_db: str = "nacos"
    """The name of the database."""
    mysql_user: str = ""
    """The user; a Secret is the better place."""
    mysql_password: str = ""
    """The password; a Secret is the better place."""
    mysql_credentials_secret_ref: CredentialsRef | None = None
    """The Secret with user and password, in place of mysqlUser and mysqlPassword."""
    mysql_check: bool = True
    """Whether the operator itself connects, to say what is wrong; off where only the pods can reach the server."""
    tls: MysqlTls | None = None
    """How connections to MySQL are protected; left out: the servers use none."""


class PostgresTls(DatabaseTls):
    """How connections to PostgreSQL are protected; modes as libpq has them."""

    server_name: str = ""
    """The name in the server's certificate, where it is not the host. The servers' driver knows only the host: where
    this is another name, servers check as verify-ca does."""


class Postgres(
    Model,
    rules=[
        _in_range("port"),
        Rule("self.host == '' || self.database != ''", message="name the database", field_path=".database"),
        Rule(
            "self.host == '' || self.credentialsSecretRef.name != ''",
            message="name the Secret with the credentials",
            field_path=".credentialsSecretRef.name",
        ),
    ],
):
    """A PostgreSQL server; without a host there is none."""

    host: str = ""
    """The host of the server; empty: PostgreSQL is not used."""
    port: Port = "5432"
    """Its port, as text."""
    database: str = ""
    """The name of the database."""
    credentials_secret_ref: CredentialsRef = field(default_factory=CredentialsRef)
    """The Secret with user and password."""
    tls: PostgresTls = field(default_factory=PostgresTls)
    """How connections are protected."""


class PgInit(Model):
    """How the schema in PostgreSQL is made."""

    enabled: bool = True
    """Whether the operator makes the schema."""
    timeout_seconds: Annotated[int, Minimum(1), Maximum(45)] = 20
    """Seconds that one attempt may take."""
    schema_version: Annotated[int, Minimum(1), Maximum(2**31 - 1)] = 1
    """The version of the schema, for the policy BumpVersion."""
    policy: Literal["IfNotPresent", "Always", "Never", "BumpVersion"] = "IfNotPresent"
    """When the schema is made: where it is missing, always, never, or when schemaVersion has grown."""


class VolumeClaim(Model):
    """A template of the volume claims."""

    api_version: str = ""
    """The API version of the template; it is not used."""
    kind: str = ""
    """The kind of the template; it is not used."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    """Labels and annotations of the claims."""
    spec: PersistentVolumeClaimSpec = field(default_factory=PersistentVolumeClaimSpec)
    """What the claims ask for."""


class Volume(Model, rules=storage_rules()):
    """Where a server keeps its data. Of several, hostPath goes before emptyDir before claims."""

    enabled: bool = False
    """Whether the servers keep their data in volumes; else it ends with the pod."""
    requests: dict[str, Quantity] = {}
    """What a claim requests: storage."""
    storage_class: str | None = None
    """The storage class of the claims; the cluster's default where it is left out."""
    volume_claim_template: VolumeClaim | None = None
    """The claims in full, in place of requests and storageClass."""
    persistent_volume_size: Quantity | None = None
    """The size of a claim, another name of requests.storage."""
    empty_dir: EmptyDirVolumeSource | None = None
    """A folder of the pod in place of a claim."""
    host_path: HostPathVolumeSource | None = None
    """A folder of the node in place of a claim."""
    keep_after_deletion: bool = False
    """Whether the claims stay when the resource is deleted, whatever deletionPolicy says."""
    deletion_policy: Literal["Retain", "Delete"] = "Retain"
    """What becomes of the claims when the resource is deleted. `keepAfterDeletion: true` keeps them in any case."""
