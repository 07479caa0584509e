"""What runs now, as far as data depends on it: read from the StatefulSet, else from a pod, else from the status.

The same reader looks at the StatefulSet that is desired, so both sides of a comparison come from the same fields. What
cannot be read is empty, and counts as unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from konverge.objects import Quantity
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.core_v1 import ConfigMap, Container, EnvVar, PersistentVolumeClaim, PodSpec
from konverge.operators.nacos import names
from konverge.operators.nacos.children.config import DB_PASSWORD, DB_USER, FINAL_KEY, POSTGRES_CA
from konverge.operators.nacos.children.environment import SERVER_VARIABLES
from konverge.operators.nacos.children.stateful_set import storage_of
from konverge.operators.nacos.desired import Desired
from konverge.operators.nacos.resource import Applied
from konverge.operators.nacos.spec.references import CredentialsRef, SecretKeyRef
from konverge.operators.nacos.spec.storage import Database, Postgres, PostgresTls
from konverge.operators.nacos.steps.pods import is_ready, pods_of
from konverge.operators.nacos.steps.state import ReconcileState

EMBEDDED, CLAIMS, NONE = "embedded", "claims", "none"
_URL = re.compile(r"^db\.url\.0=jdbc:postgresql://(\[[^\]]*\]|[^:/]*):(\d+)/([^?\s]*)\?(\S*)", re.MULTILINE)


class Present(msgspec.Struct, frozen=True, kw_only=True):
    """What holds or finds the data. `database` and `volume` are texts that tell two places apart."""

    type: str = ""
    database: str = ""
    volume: str = ""
    storage_class: str = ""
    """Of the claims' template; empty: the cluster's default."""
    size: Quantity | None = None
    image: str = ""


async def read_present(state: ReconcileState, live: StatefulSet | None) -> Present | None:
    """None: nothing runs, and nothing is remembered."""
    name = state.desired.name
    if live is not None:
        spec = live.spec.template.spec
        return read(name, spec, live.spec.volume_claim_templates, await _properties(state, spec))
    pods = sorted(pods_of(state), key=is_ready)
    if pods:
        spec = pods[-1].spec
        return read(name, spec, None, await _properties(state, spec))
    applied = state.status.applied
    if applied.type:
        return Present(type=applied.type, database=applied.database, volume=applied.volume, image=applied.image)
    return None


def read(
    name: str, spec: PodSpec, claims: Sequence[PersistentVolumeClaim] | None, properties: str | None = None
) -> Present:
    """`claims` are the templates of a StatefulSet; None for a pod. `properties` are those of PostgreSQL."""
    container = next((entry for entry in spec.containers if entry.name == name), Container(name=name))
    env = _plain(container)
    template = next((claim for claim in claims or () if claim.metadata.name == names.DATA_VOLUME), None)
    return Present(
        type=env.get("MODE") or ("cluster" if env.get("NACOS_SERVERS") else ""),
        database=_database(env, properties),
        volume=CLAIMS if template is not None else _volume(spec),
        storage_class=template.spec.storage_class_name or "" if template is not None else "",
        size=storage_of(template) if template is not None else None,
        image=container.image or "",
    )


def applied(present: Present, pod_security: str, replicas: int = 0) -> Applied:
    """For the status; `replicas` of one that hibernates."""
    return Applied(
        type=present.type,
        database=present.database,
        volume=present.volume,
        storage_class=present.storage_class,
        size=present.size,
        image=present.image,
        pod_security=pod_security,
        replicas=replicas,
    )


def postgres_address(host: str, port: str, database: str) -> str:
    return f"postgresql://{host}:{port}/{database}"


def _plain(container: Container) -> dict[str, str]:
    return {variable.name: variable.value for variable in container.env if variable.value}


def _database(env: dict[str, str], properties: str | None) -> str:
    platform = env.get("SPRING_DATASOURCE_PLATFORM", "")
    if platform == "mysql":
        host, port, name = (env.get(variable, "") for variable in SERVER_VARIABLES[:3])
        return f"mysql://{host}:{port}/{name}" if host and port and name else ""
    if platform == "postgresql":
        url = _URL.search(properties or "")
        return postgres_address(url[1].strip("[]"), url[2], url[3]) if url else ""
    return EMBEDDED if env.get("EMBEDDED_STORAGE") == "embedded" else ""


def _volume(spec: PodSpec) -> str:
    """A pod has its claim among its volumes, where the template of a StatefulSet has none."""
    for volume in spec.volumes:
        if volume.name == names.DATA_VOLUME and volume.persistent_volume_claim is not None:
            return CLAIMS
        if volume.name == names.DATA_VOLUME and volume.host_path is not None:
            return f"hostPath:{volume.host_path.path}"
    return NONE


async def _properties(state: ReconcileState, spec: PodSpec) -> str | None:
    """The application.properties that the pods mount."""
    for volume in spec.volumes:
        if volume.config_map is not None and volume.name == "final-config":
            config = await state.reads.get(ConfigMap, volume.config_map.name or "")
            return config.data.get(FINAL_KEY) if config is not None else None
    return None


# ------------------------------------------------------------------ the database block of what runs


async def present_database(state: ReconcileState, spec: PodSpec, desired: Desired) -> tuple[Database, Postgres]:
    """The settings with which the pods were created, in the form of a spec."""
    container = next((entry for entry in spec.containers if entry.name == desired.name), Container(name=desired.name))
    env = {variable.name: variable for variable in container.env}
    plain = _plain(container)
    platform = plain.get("SPRING_DATASOURCE_PLATFORM", "")
    if platform == "mysql":
        return _mysql(env, desired), Postgres()
    if platform == "postgresql":
        return Database(type="postgresql"), _postgres(env, spec, await _properties(state, spec) or "")
    return Database(type="embedded"), Postgres()


def _mysql(env: dict[str, EnvVar], desired: Desired) -> Database:
    host, port, name, user, password = (env.get(variable, EnvVar(name=variable)) for variable in SERVER_VARIABLES)
    return Database(
        type="mysql",
        mysql_host=host.value or "",
        mysql_port=port.value or "",
        mysql_db=name.value or "",
        mysql_user=user.value or "",
        mysql_password=password.value or "",
        mysql_credentials_secret_ref=_credentials(user, password),
        mysql_check=desired.spec.database.mysql_check,
    )


def _postgres(env: dict[str, EnvVar], spec: PodSpec, properties: str) -> Postgres:
    url = _URL.search(properties)
    if url is None:
        return Postgres()
    parameters = dict(part.split("=", 1) for part in url[4].split("&") if "=" in part)
    ca = next((volume.secret for volume in spec.volumes if volume.name == "postgres-ca"), None)
    key = parameters.get("sslrootcert", "").removeprefix(f"{POSTGRES_CA}/")
    reference = SecretKeyRef(name=ca.secret_name or "", key=key) if ca is not None else None
    credentials = _credentials(env.get(DB_USER), env.get(DB_PASSWORD))
    return Postgres(
        host=url[1].strip("[]"),
        port=url[2],
        database=url[3],
        credentials_secret_ref=credentials or CredentialsRef(),
        tls=PostgresTls(mode=parameters.get("sslmode", "prefer"), ca_secret_ref=reference),  # type: ignore[arg-type]
    )


def _credentials(user: EnvVar | None, password: EnvVar | None) -> CredentialsRef | None:
    sources = [variable.value_from.secret_key_ref for variable in (user, password) if variable and variable.value_from]
    if len(sources) != 2 or sources[0] is None or sources[1] is None:
        return None
    return CredentialsRef(name=sources[0].name or "", username_key=sources[0].key, password_key=sources[1].key)
