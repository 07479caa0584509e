"""The environment of a server: everything that an image of Nacos can be told."""

from __future__ import annotations

from konverge.objects.kinds.core_v1 import EnvVar, EnvVarSource, SecretKeySelector
from konverge.operators.nacos import names
from konverge.operators.nacos.children.properties import DB_PASSWORD, DB_USER
from konverge.operators.nacos.children.secrets import IDENTITY_KEY, IDENTITY_VALUE, TOKEN
from konverge.operators.nacos.wish import Wish

# What the operator's own work rests on: whoever sets them otherwise gets no cluster, so they are not up for choice.
_OURS = frozenset(("MODE", "NACOS_SERVERS", "NACOS_REPLICAS", "PREFER_HOST_MODE"))
EXPOSED = "MANAGEMENT_ENDPOINTS_WEB_EXPOSURE_INCLUDE"
"""What Spring shows under /actuator; images of 2.x leave the numbers out. The environment goes before their files."""
_S = "MYSQL_SERVICE_"
SERVER_VARIABLES = (f"{_S}HOST", f"{_S}PORT", f"{_S}DB_NAME", f"{_S}USER", f"{_S}PASSWORD")
JOB_VARIABLES = ("MYSQL_HOST", "MYSQL_PORT", "MYSQL_DB", "MYSQL_USER", "MYSQL_PASS")
_OLD_DEFAULT_TOKEN = "SecretKey" + "0123456789" * 6  # what images before 2.2 expect when nothing is given


def environment(wish: Wish) -> list[EnvVar]:
    """The user's variables first. One that both name is the user's, unless the cluster itself rests on it."""
    ours = [_plain("PREFER_HOST_MODE", "hostname"), *_mode(wish), *_database(wish), *_authentication(wish)]
    if wish.spec.function_mode:
        ours.append(_plain("FUNCTION_MODE", wish.spec.function_mode))
    if wish.spec.metrics.enabled:
        ours.append(_plain(EXPOSED, "prometheus,health"))
    given = {one.name: one for one in wish.spec.env if one.name not in _OURS}
    return [*given.values(), *(one for one in ours if one.name not in given)]


def from_secrets(wish: Wish) -> list[tuple[str, str]]:
    """The Secrets and keys that the servers' variables come from; those that only the user names are the user's."""
    given = {one.name for one in wish.spec.env} - _OURS
    sources = (one.value_from.secret_key_ref for one in environment(wish) if one.value_from and one.name not in given)
    return [(ref.name or "", ref.key) for ref in sources if ref is not None]


def _mode(wish: Wish) -> list[EnvVar]:
    if not wish.cluster:
        return [_plain("MODE", "standalone")]
    return [
        _plain("MODE", "cluster"),
        _plain("NACOS_REPLICAS", str(wish.listed)),
        _plain("NACOS_SERVERS", " ".join(wish.members)),
    ]


def _database(wish: Wish) -> list[EnvVar]:
    if wish.engine == "mysql":
        return [_plain("SPRING_DATASOURCE_PLATFORM", "mysql"), *mysql_variables(wish, SERVER_VARIABLES)]
    if wish.engine == "postgresql":
        ref = wish.spec.postgres.credentials_secret_ref
        return [
            _plain("SPRING_DATASOURCE_PLATFORM", "postgresql"),
            _secret(DB_USER, ref.name, ref.username_key),
            _secret(DB_PASSWORD, ref.name, ref.password_key),
        ]
    # A standalone uses its embedded database anyway; a cluster has to be told.
    return [_plain("EMBEDDED_STORAGE", "embedded")]


def mysql_variables(wish: Wish, called: tuple[str, str, str, str, str]) -> list[EnvVar]:
    """Where MySQL is and who connects, under the names that servers or the Job know."""
    db, ref = wish.spec.database, wish.spec.database.mysql_credentials_secret_ref
    host, port, database, user, word = called
    where = [_plain(host, db.mysql_host), _plain(port, db.mysql_port), _plain(database, db.mysql_db)]
    if ref is not None and ref.name:
        return [*where, _secret(user, ref.name, ref.username_key), _secret(word, ref.name, ref.password_key)]
    return [*where, _plain(user, db.mysql_user), _plain(word, db.mysql_password)]


def _authentication(wish: Wish) -> list[EnvVar]:
    if not wish.needs_auth_secret:
        return _identity(wish) if wish.spec.identity_secret_ref else []
    certification = wish.spec.certification
    found = [_token(wish), *_identity(wish)]
    if certification.enabled:
        found += [
            _plain("NACOS_AUTH_ENABLE", "true"),
            _plain("NACOS_AUTH_TOKEN_EXPIRE_SECONDS", certification.token_expire_seconds),
            _plain("NACOS_AUTH_CACHE_ENABLE", str(certification.cache_enabled).lower()),
        ]
    return found


def _token(wish: Wish) -> EnvVar:
    certification, ref = wish.spec.certification, wish.spec.certification.token_secret_ref
    if ref is not None and ref.name:
        return _secret("NACOS_AUTH_TOKEN", ref.name, ref.key or TOKEN)
    if certification.token:
        return _plain("NACOS_AUTH_TOKEN", certification.token)
    if wish.plain_token:
        return _plain("NACOS_AUTH_TOKEN", _OLD_DEFAULT_TOKEN)
    return _secret("NACOS_AUTH_TOKEN", names.auth_secret(wish.name), TOKEN)


def _identity(wish: Wish) -> list[EnvVar]:
    ref = wish.spec.identity_secret_ref
    if ref is not None and ref.name:
        secret, key, value = ref.name, ref.key_key, ref.value_key
    else:
        secret, key, value = names.auth_secret(wish.name), IDENTITY_KEY, IDENTITY_VALUE
    return [_secret("NACOS_AUTH_IDENTITY_KEY", secret, key), _secret("NACOS_AUTH_IDENTITY_VALUE", secret, value)]


def _plain(name: str, value: str) -> EnvVar:
    return EnvVar(name=name, value=value)


def _secret(name: str, secret: str, key: str) -> EnvVar:
    return EnvVar(name=name, value_from=EnvVarSource(secret_key_ref=SecretKeySelector(name=secret, key=key)))
