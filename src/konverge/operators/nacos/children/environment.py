"""The environment of a server: all settings of an image of Nacos; and the Secret without which Nacos 3 does not start.

The Secret has a token to sign with, and the servers' identity.
"""

from __future__ import annotations

import base64
import secrets

from konverge.objects.kinds.core_v1 import ConfigMapKeySelector, EnvVar, EnvVarSource, Secret, SecretKeySelector
from konverge.operators.nacos import names
from konverge.operators.nacos.children.config import DB_PASSWORD, DB_USER, LIST_KEY
from konverge.operators.nacos.children.mysql_tls import driver_parameters
from konverge.operators.nacos.children.server_tls import CERTIFICATE, KEY
from konverge.operators.nacos.desired import MYSQL_PARAMETERS, Desired

TOKEN, IDENTITY_KEY, IDENTITY_VALUE = "token", "identity_key", "identity_value"
ADMIN_PASSWORD, NEXT_ADMIN_PASSWORD = "admin_password", "next_admin_password"
"""The administrator's password that the operator last set by the servers' API, and the one that it is about to set."""


def auth_secret(desired: Desired) -> Secret:
    """With new values, which are never changed: a new token would end every session."""
    values = {
        TOKEN: base64.b64encode(secrets.token_bytes(48)).decode(),
        IDENTITY_KEY: "nacos-operator-identity",
        IDENTITY_VALUE: secrets.token_urlsafe(24),
    }
    return Secret(
        metadata=desired.metadata(names.auth_secret(desired.name)),
        type="Opaque",
        data={key: base64.b64encode(value.encode()).decode() for key, value in values.items()},
    )


# The operator depends on these: with other values there is no cluster, so the user cannot set them.
_OURS = frozenset(("MODE", "NACOS_SERVERS", "NACOS_REPLICAS", "PREFER_HOST_MODE"))
EXPOSED = "MANAGEMENT_ENDPOINTS_WEB_EXPOSURE_INCLUDE"
"""What Spring shows under /actuator; images of 2.x leave the metrics out. The environment overrides their files."""
_S = "MYSQL_SERVICE_"
SERVER_VARIABLES = (f"{_S}HOST", f"{_S}PORT", f"{_S}DB_NAME", f"{_S}USER", f"{_S}PASSWORD")
JOB_VARIABLES = ("MYSQL_HOST", "MYSQL_PORT", "MYSQL_DB", "MYSQL_USER", "MYSQL_PASS")
_OLD_DEFAULT_TOKEN = "SecretKey" + "0123456789" * 6  # what images before 2.2 expect when nothing is given


def environment(desired: Desired) -> list[EnvVar]:
    """The user's variables first. The user's value wins, unless the cluster itself depends on the variable."""
    ours = [_plain("PREFER_HOST_MODE", "hostname"), *_mode(desired), *_database(desired), *_authentication(desired)]
    if desired.spec.function_mode:
        ours.append(_plain("FUNCTION_MODE", desired.spec.function_mode))
    if desired.spec.metrics.enabled:
        ours.append(_plain(EXPOSED, "prometheus,health"))
    given = {variable.name: variable for variable in desired.spec.env if variable.name not in _OURS}
    return [*given.values(), *(variable for variable in ours if variable.name not in given)]


def from_secrets(desired: Desired) -> list[tuple[str, str]]:
    """The Secrets and keys of the operator's own variables, and of the certificate, which servers read when they start;
    the user's variables are the user's business.
    """
    given = {variable.name for variable in desired.spec.env} - _OURS
    sources = (
        variable.value_from.secret_key_ref
        for variable in environment(desired)
        if variable.value_from and variable.name not in given
    )
    named = [(ref.name or "", ref.key) for ref in sources if ref is not None]
    tls = desired.spec.tls
    return named if tls is None else [*named, (tls.secret_ref.name, CERTIFICATE), (tls.secret_ref.name, KEY)]


def _mode(desired: Desired) -> list[EnvVar]:
    if not desired.cluster:
        return [_plain("MODE", "standalone")]
    if desired.lists_by_file:  # what a server starts with; it is no part of the template, so it restarts no server
        source = EnvVarSource(config_map_key_ref=ConfigMapKeySelector(name=desired.name, key=LIST_KEY))
        return [_plain("MODE", "cluster"), EnvVar(name="NACOS_SERVERS", value_from=source)]
    return [
        _plain("MODE", "cluster"),
        _plain("NACOS_REPLICAS", str(desired.listed)),
        _plain("NACOS_SERVERS", " ".join(desired.members)),
    ]


def _database(desired: Desired) -> list[EnvVar]:
    if desired.engine == "mysql":
        variables = [_plain("SPRING_DATASOURCE_PLATFORM", "mysql"), *mysql_variables(desired, SERVER_VARIABLES)]
        parameters = driver_parameters(desired)
        return [*variables, _plain(MYSQL_PARAMETERS, parameters)] if parameters else variables
    if desired.engine == "postgresql":
        ref = desired.spec.postgres.credentials_secret_ref
        return [
            _plain("SPRING_DATASOURCE_PLATFORM", "postgresql"),
            _secret(DB_USER, ref.name, ref.username_key),
            _secret(DB_PASSWORD, ref.name, ref.password_key),
        ]
    # A standalone uses its embedded database anyway; a cluster needs the setting.
    return [_plain("EMBEDDED_STORAGE", "embedded")]


def mysql_variables(desired: Desired, variables: tuple[str, str, str, str, str]) -> list[EnvVar]:
    """The address of MySQL and the credentials, under the names that servers or the Job use."""
    db, ref = desired.spec.database, desired.spec.database.mysql_credentials_secret_ref
    host, port, database, user, password = variables
    address = [_plain(host, db.mysql_host), _plain(port, db.mysql_port), _plain(database, db.mysql_db)]
    if ref is not None and ref.name:
        return [*address, _secret(user, ref.name, ref.username_key), _secret(password, ref.name, ref.password_key)]
    return [*address, _plain(user, db.mysql_user), _plain(password, db.mysql_password)]


def _authentication(desired: Desired) -> list[EnvVar]:
    if not desired.needs_auth_secret:
        return _identity(desired) if desired.spec.identity_secret_ref else []
    certification = desired.spec.certification
    variables = [_token(desired), *_identity(desired)]
    if certification.enabled:
        variables += [
            _plain("NACOS_AUTH_ENABLE", "true"),
            _plain("NACOS_AUTH_TOKEN_EXPIRE_SECONDS", certification.token_expire_seconds),
            _plain("NACOS_AUTH_CACHE_ENABLE", str(certification.cache_enabled).lower()),
        ]
    return variables


def _token(desired: Desired) -> EnvVar:
    certification, ref = desired.spec.certification, desired.spec.certification.token_secret_ref
    if ref is not None and ref.name:
        return _secret("NACOS_AUTH_TOKEN", ref.name, ref.key or TOKEN)
    if certification.token:
        return _plain("NACOS_AUTH_TOKEN", certification.token)
    if desired.plain_token:
        return _plain("NACOS_AUTH_TOKEN", _OLD_DEFAULT_TOKEN)
    return _secret("NACOS_AUTH_TOKEN", names.auth_secret(desired.name), TOKEN)


def _identity(desired: Desired) -> list[EnvVar]:
    ref = desired.spec.identity_secret_ref
    if ref is not None and ref.name:
        secret, key, value = ref.name, ref.key_key, ref.value_key
    else:
        secret, key, value = names.auth_secret(desired.name), IDENTITY_KEY, IDENTITY_VALUE
    return [_secret("NACOS_AUTH_IDENTITY_KEY", secret, key), _secret("NACOS_AUTH_IDENTITY_VALUE", secret, value)]


def _plain(name: str, value: str) -> EnvVar:
    return EnvVar(name=name, value=value)


def _secret(name: str, secret: str, key: str) -> EnvVar:
    return EnvVar(name=name, value_from=EnvVarSource(secret_key_ref=SecretKeySelector(name=secret, key=key)))
