"""The desired state of a Nacos: its spec, checked once more, with everything filled in that depends on other fields.

The API server refuses what the schema refuses. A resource that got in under an older definition meets the same rules
here, and becomes a readable failure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from konverge.objects import ObjectMeta, QuantityError, from_dict
from konverge.operators.nacos import names
from konverge.operators.nacos.resource import LONGEST_NAME, LONGEST_NAME_WITH_JOB, NAME, NAME_WITH_JOB, AnyNacos
from konverge.operators.nacos.spec import RESTRICTED, NacosSpec
from konverge.operators.nacos.spec_amounts import template_size, wrong_amounts
from konverge.operators.nacos.versions import NacosVersion, read_version, version_of_image

Engine = Literal["embedded", "mysql", "postgresql"]

_FIRST_WITHOUT_INIT_D = (2, 1, 1)
"""From this version on images read application.properties only, and no custom.properties."""
_FIRST_WITH_BASE64_TOKENS = (2, 2, 0)
_FIRST_WITH_TLS = (2, 2, 1)
_FIRST_WITH_TLS_APART = (2, 4, 0)
"""From this version on the gRPC port between servers has settings of its own."""
_LEAST_TOKEN = 32
"""Bytes. With fewer, servers exit at their start."""
MYSQL_PARAMETERS = "MYSQL_SERVICE_DB_PARAM"
"""The variable with the parameters of the JDBC URL, in all images."""
# Annotations that are about the resource itself, or change without anything else changing.
_NOT_INHERITED = ("kubectl.kubernetes.io/", "nacos.io/", "konverge.dev/", "meta.helm.sh/")


class InvalidSpec(Exception):
    """The user has to change the resource; the text begins with the field's path."""


class Desired(msgspec.Struct, frozen=True, kw_only=True):
    """What the children are built from."""

    name: str
    namespace: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: NacosSpec
    replicas: int
    listed: int
    """How many servers are in the servers' own lists: fewer than `replicas` while a cluster shrinks."""
    engine: Engine
    version: NacosVersion
    listed_since: str = ""
    """Since when, where the servers read their list from a file."""
    keeps_list: bool = False
    """Whether pods of an earlier template still read that file."""
    restricted: bool = False
    """Whether the pods meet Pod Security's standard "restricted"; chosen by PreCheck where the spec leaves it open."""

    @property
    def cluster(self) -> bool:
        return self.spec.type == "cluster"

    @property
    def quorum(self) -> int:
        return self.replicas // 2 + 1

    @property
    def needed_ready(self) -> int:
        """How many ready pods CheckKind requires."""
        return (self.replicas + 1) // 2 if self.cluster else 1

    @property
    def third(self) -> bool:
        """Nacos 3: another console, other probes, authentication that cannot be switched off."""
        return self.version.major >= 3

    @property
    def domain(self) -> str:
        given = {var.name: var.value for var in self.spec.env}
        return (self.spec.cluster_domain or given.get("DOMAIN_NAME") or "cluster.local").strip(".")

    @property
    def needs_auth_secret(self) -> bool:
        """An unknown version may be one that does not start without it."""
        return self.third or not self.version.known or self.spec.certification.enabled

    @property
    def plain_token(self) -> bool:
        """Images before 2.2 accept any text as a token, later ones need Base64 of at least 32 bytes."""
        return self.version.known and self.version < _FIRST_WITH_BASE64_TOKENS

    @property
    def renders(self) -> bool:
        """Whether the operator writes the servers' application.properties itself."""
        spec = self.spec
        requested = spec.user_config_ref or spec.internal_config_ref or spec.final_config_name or spec.tls
        return bool(requested) or self.engine == "postgresql" or bool(spec.config and not self.reads_init_d)

    @property
    def reads_init_d(self) -> bool:
        return self.version.known and self.version < _FIRST_WITHOUT_INIT_D

    @property
    def final_config(self) -> str:
        return self.spec.final_config_name or names.final_config(self.name)

    @property
    def mysql_init(self) -> bool:
        return self.engine == "mysql" and bool(self.spec.mysql_init_image)

    @property
    def lists_by_file(self) -> bool:
        """Whether the servers' list of members is a file that changes under them, and no part of the pods' template.

        Restricted servers cannot write the list for Nacos.
        """
        return self.cluster and self.spec.scale_without_restarts and not self.restricted

    @property
    def members(self) -> list[str]:
        return [names.member(self.name, i, self.namespace, self.domain) for i in range(self.listed)]

    @property
    def child_labels(self) -> dict[str, str]:
        return {**self.labels, **names.selector(self.name)}

    def metadata(self, name: str, *, extra: dict[str, str] | None = None) -> ObjectMeta:
        """Of a child: the labels that select it, and the resource's own labels and annotations."""
        inherited = {key: value for key, value in self.annotations.items() if not key.startswith(_NOT_INHERITED)}
        annotations = {**inherited, **(extra or {})}
        return ObjectMeta(name=name, namespace=self.namespace, labels=self.child_labels, annotations=annotations)


def read_desired(nacos: AnyNacos) -> Desired:
    """The desired state of a resource. Raises InvalidSpec."""
    try:
        spec = from_dict(NacosSpec, nacos.spec)
    except (msgspec.ValidationError, QuantityError) as error:
        raise InvalidSpec(f"spec: {error}") from None
    meta = nacos.metadata
    if names.RESTORE in meta.annotations:
        spec = msgspec.structs.replace(spec, hibernate=True)
    engine, replicas = engine_of(spec), _replicas(spec)
    desired = Desired(
        name=meta.name,
        namespace=meta.namespace,
        labels=meta.labels,
        annotations=meta.annotations,
        spec=spec,
        replicas=replicas,
        listed=replicas,
        engine=engine,
        version=_version(spec, nacos.status.version),
        restricted=spec.pod_security == RESTRICTED,
    )
    _check_name(desired)
    if spec.scale_without_restarts and desired.restricted:
        raise InvalidSpec(
            "spec.scaleWithoutRestarts: servers of podSecurity: Restricted cannot write their list of members; leave "
            "one of the two out"
        )
    if spec.network_policy.egress.enabled and not spec.network_policy.enabled:
        raise InvalidSpec(
            "spec.networkPolicy.egress.enabled: there is no NetworkPolicy without networkPolicy.enabled: true"
        )
    _check_storage(spec, engine)
    for problem in wrong_amounts(spec):
        raise InvalidSpec(problem)
    _check_token(desired)
    _check_server_tls(desired)
    return desired


def _check_name(desired: Desired) -> None:
    name = desired.name
    if not re.match(NAME, name) or len(name) > LONGEST_NAME:
        raise InvalidSpec(
            f"metadata.name: {name!r} cannot be the name of Services (letters, digits and '-', at most {LONGEST_NAME})"
        )
    if desired.mysql_init and len(name) > LONGEST_NAME_WITH_JOB:
        raise InvalidSpec(f"metadata.name: {NAME_WITH_JOB}")


def _replicas(spec: NacosSpec) -> int:
    if spec.type == "standalone":
        if spec.replicas not in (None, 1):
            raise InvalidSpec(f"spec.replicas: a standalone has 1 replica, not {spec.replicas}; use type: cluster")
        return 1
    replicas = 3 if spec.replicas is None else spec.replicas
    if replicas < 3 and not spec.allow_small_clusters:
        raise InvalidSpec(
            f"spec.replicas: a cluster needs at least 3 replicas, not {replicas}; allowSmallClusters: true permits it"
        )
    return replicas


def engine_of(spec: NacosSpec) -> Engine:
    if spec.database.type == "mysql":
        return "mysql"
    return "postgresql" if spec.postgres.host else "embedded"


def _version(spec: NacosSpec, reported: str) -> NacosVersion:
    """The one that the spec says, else the version that the servers reported."""
    declared = declared_version(spec)
    return declared if declared.known else read_version(reported)


def declared_version(spec: NacosSpec) -> NacosVersion:
    """The user's `version`, else that of the image's tag; it may be unknown."""
    version = read_version(spec.version or "")
    return version if version.known else version_of_image(spec.image)


def _check_storage(spec: NacosSpec, engine: Engine) -> None:
    database, postgres = spec.database, spec.postgres
    if engine == "mysql":
        if not database.mysql_host:
            raise InvalidSpec("spec.database.mysqlHost: type mysql needs the server's host")
        if not _mysql_login(database):
            raise InvalidSpec("spec.database.mysqlCredentialsSecretRef: type mysql needs it, or a user and a password")
        if postgres.host:
            raise InvalidSpec("spec.postgres.host: the database is either mysql or postgres")
        _check_port("spec.database.mysqlPort", database.mysql_port)
        _check_mysql_tls(spec)
    if engine == "postgresql":
        _check_port("spec.postgres.port", postgres.port)
        if not postgres.database:
            raise InvalidSpec("spec.postgres.database: postgres config invalid: host/user/database must be set")
        if not postgres.credentials_secret_ref.name:
            raise InvalidSpec("spec.postgres.credentialsSecretRef.name: postgres.credentialsSecretRef.name is required")
    elif (database.type or "").startswith("postgres"):
        raise InvalidSpec("spec.postgres.host: type postgresql needs the server's host")
    volume = spec.volume
    sized = volume.requests.get("storage") or template_size(volume) or volume.persistent_volume_size
    if volume.enabled and not (sized or volume.empty_dir or volume.host_path):
        raise InvalidSpec("spec.volume.requests: an enabled volume needs requests.storage")


def _check_mysql_tls(spec: NacosSpec) -> None:
    tls = spec.database.tls
    if tls is None:
        return
    if tls.ca_secret_ref is not None and not tls.ca_secret_ref.name:
        raise InvalidSpec("spec.database.tls.caSecretRef.name: name the Secret with the certificate authority")
    if any(variable.name == MYSQL_PARAMETERS for variable in spec.env):
        raise InvalidSpec(
            f"spec.database.tls: the variable {MYSQL_PARAMETERS} of spec.env says how servers connect: take it out, "
            "or leave spec.database.tls out and put sslMode into the variable"
        )


def _check_port(path: str, port: str) -> None:
    if not 1 <= int(port) <= 65535:
        raise InvalidSpec(f"{path}: {port} is not a port: use a number from 1 to 65535")


def _check_token(desired: Desired) -> None:
    certification = desired.spec.certification
    token, ref = certification.token, certification.token_secret_ref
    if not token or (ref is not None and ref.name) or not desired.needs_auth_secret:
        return
    if desired.version.known and not desired.plain_token and (size := _bytes_of(token)) < _LEAST_TOKEN:
        raise InvalidSpec(
            f"spec.certification.token: {size} bytes are too few, Nacos {desired.version} needs {_LEAST_TOKEN}; "
            "leave it out and the operator creates one, or use `openssl rand -base64 32`"
        )


def _check_server_tls(desired: Desired) -> None:
    tls, version = desired.spec.tls, desired.version
    if tls is None:
        return
    if not version.known:
        raise InvalidSpec("spec.tls: whether the servers can do it depends on their version: set spec.version")
    if version < _FIRST_WITH_TLS:
        raise InvalidSpec(f"spec.tls: Nacos {version} has no TLS for gRPC: use {_first(_FIRST_WITH_TLS)} or later")
    if tls.plaintext == "Refused" and desired.cluster and version < _FIRST_WITH_TLS_APART:
        raise InvalidSpec(
            f"spec.tls.plaintext: servers of {version} speak plain text with each other, on ports with the same "
            f"setting: use Allowed, or Nacos {_first(_FIRST_WITH_TLS_APART)} or later"
        )


def _first(version: tuple[int, int, int]) -> str:
    return ".".join(map(str, version))


def _bytes_of(token: str) -> int:
    """As the servers read it: Base64, with or without its padding; any other text counts as it is."""
    bare = token.rstrip("=")
    if re.fullmatch(r"[A-Za-z0-9+/]*", bare) and len(bare) % 4 != 1:
        return len(bare) * 3 // 4
    return len(token.encode())


def _mysql_login(database: Any) -> bool:
    ref = database.mysql_credentials_secret_ref
    return bool(ref and ref.name) or bool(database.mysql_user and database.mysql_password)
