"""ConfigMaps: the user's own properties, the merged application.properties, the script for MySQL.

Our application.properties replaces the image's file. So it repeats every setting that the image takes from the
environment. Passwords stay in the environment: the file only names the variables.
"""

from __future__ import annotations

import hashlib

from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.operators.nacos import names
from konverge.operators.nacos.children.server_tls import tls_properties
from konverge.operators.nacos.desired import Desired
from konverge.operators.nacos.spec.storage import Postgres

POSTGRES_CA = "/home/nacos/postgres-ca"
CA_KEY = "ca.crt"
DB_USER, DB_PASSWORD = "NACOS_DB_USER", "NACOS_DB_PASSWORD"

_MYSQL_PARAMETERS = (
    "characterEncoding=utf8&connectTimeout=1000&socketTimeout=3000&autoReconnect=true&useSSL=false"
    "&allowPublicKeyRetrieval=true"
)
_JAVAS_AUTHORITIES = "org.postgresql.ssl.DefaultJavaSSLFactory"
_POSTGRES_PARAMETERS = "tcpKeepAlive=true&reWriteBatchedInserts=true&ApplicationName=nacos_java"

_SERVER_2 = """\
server.servlet.contextPath=${SERVER_SERVLET_CONTEXTPATH:/nacos}
server.contextPath=/nacos
server.port=${NACOS_APPLICATION_PORT:8848}
nacos.console.ui.enabled=${NACOS_CONSOLE_UI_ENABLED:true}"""
_SERVER_3 = """\
nacos.server.contextPath=${SERVER_SERVLET_CONTEXTPATH:/nacos}
nacos.server.main.port=${NACOS_APPLICATION_PORT:8848}
nacos.console.port=${NACOS_CONSOLE_PORT:8080}
nacos.console.contextPath=${NACOS_CONSOLE_CONTEXTPATH:}
nacos.deployment.type=${NACOS_DEPLOYMENT_TYPE:merged}
nacos.core.auth.admin.enabled=${NACOS_AUTH_ADMIN_ENABLE:true}
nacos.core.auth.console.enabled=${NACOS_AUTH_CONSOLE_ENABLE:true}"""
_COMMON = """\
server.error.include-message=ALWAYS
server.tomcat.basedir=file:.
server.tomcat.accesslog.enabled=${TOMCAT_ACCESSLOG_ENABLED:false}
management.endpoints.web.exposure.include=prometheus,health
management.metrics.export.elastic.enabled=false
management.metrics.export.influx.enabled=false
nacos.core.auth.system.type=${NACOS_AUTH_SYSTEM_TYPE:nacos}
nacos.core.auth.enabled=${NACOS_AUTH_ENABLE:false}
nacos.core.auth.caching.enabled=${NACOS_AUTH_CACHE_ENABLE:false}
nacos.core.auth.enable.userAgentAuthWhite=${NACOS_AUTH_USER_AGENT_AUTH_WHITE_ENABLE:false}
nacos.core.auth.server.identity.key=${NACOS_AUTH_IDENTITY_KEY:}
nacos.core.auth.server.identity.value=${NACOS_AUTH_IDENTITY_VALUE:}
nacos.core.auth.plugin.nacos.token.cache.enable=${NACOS_AUTH_CACHE_ENABLE:false}
nacos.core.auth.plugin.nacos.token.expire.seconds=${NACOS_AUTH_TOKEN_EXPIRE_SECONDS:18000}
nacos.core.auth.plugin.nacos.token.secret.key=${NACOS_AUTH_TOKEN:}
nacos.core.param.check.enabled=${NACOS_CORE_PARAM_CHECK_ENABLED:true}
nacos.istio.mcp.server.enabled=false"""


def base_properties(desired: Desired) -> str:
    """What the servers need to start, before any setting of the user."""
    server = _SERVER_3 if desired.third else _SERVER_2
    return "\n".join(part for part in (server, _COMMON, _database(desired)) if part)


def _database(desired: Desired) -> str:
    if desired.engine == "mysql":
        host = "${MYSQL_SERVICE_HOST}:${MYSQL_SERVICE_PORT:3306}/${MYSQL_SERVICE_DB_NAME}"
        url = f"jdbc:mysql://{host}?${{MYSQL_SERVICE_DB_PARAM:{_MYSQL_PARAMETERS}}}"
        return _lines("mysql", url, "MYSQL_SERVICE_USER", "MYSQL_SERVICE_PASSWORD")
    if desired.engine == "postgresql":
        postgres = desired.spec.postgres
        host = f"[{postgres.host}]" if ":" in postgres.host else postgres.host
        url = f"jdbc:postgresql://{host}:{postgres.port}/{postgres.database}?{_postgres_tls(postgres)}"
        driver = "db.pool.config.driverClassName=org.postgresql.Driver"
        test = "db.pool.config.connectionTestQuery=SELECT 1"
        lines = _lines("postgresql", f"{url}&{_POSTGRES_PARAMETERS}", DB_USER, DB_PASSWORD)
        return "\n".join((lines, driver, test))
    return ""


def _postgres_tls(postgres: Postgres) -> str:
    """The driver compares the certificate with the host alone, and without a file it looks for one in its home."""
    tls, mode = postgres.tls, postgres.tls.mode_in_force
    if mode == "verify-full" and tls.server_name not in ("", postgres.host):
        mode = "verify-ca"
    if tls.ca_secret_ref is not None:
        return f"sslmode={mode}&sslrootcert={POSTGRES_CA}/{tls.ca_secret_ref.key or CA_KEY}"
    return f"sslmode={mode}&sslfactory={_JAVAS_AUTHORITIES}" if tls.verifies else f"sslmode={mode}"


def _lines(platform: str, url: str, user: str, password: str) -> str:
    """Both names of the platform: servers before 2.2 read the second."""
    return "\n".join(
        (
            f"spring.sql.init.platform={platform}",
            f"spring.datasource.platform={platform}",
            "db.num=1",
            f"db.url.0={url}",
            f"db.user.0=${{{user}}}",
            f"db.password.0=${{{password}}}",
            "db.pool.config.connectionTimeout=${DB_POOL_CONNECTION_TIMEOUT:30000}",
        )
    )


CUSTOM_KEY = "custom.properties"
MEMBERS_KEY = "cluster.conf"
LIST_KEY = "servers"
"""The members as NACOS_SERVERS has them: in one line."""
FINAL_KEY = "application.properties"
SCRIPT_KEY = "SQL_SCRIPT"


def config_map(desired: Desired) -> ConfigMap:
    """`<name>`: the user's `config`, which images up to 2.1.0 read from init.d; the members of a restricted cluster,
    whose servers cannot write the list themselves; the list that running servers follow, where they do.
    """
    data = {CUSTOM_KEY: desired.spec.config}
    if desired.restricted and desired.cluster:
        data[MEMBERS_KEY] = "".join(f"{member}\n" for member in desired.members)
    if desired.lists_by_file or desired.keeps_list:
        data[LIST_KEY] = " ".join(desired.members)
    return ConfigMap(metadata=desired.metadata(desired.name), data=data)


def final_config_map(desired: Desired, text: str) -> ConfigMap:
    """The application.properties of the servers, where the operator writes it."""
    return ConfigMap(metadata=desired.metadata(desired.final_config), data={FINAL_KEY: text})


def mysql_config_map(desired: Desired, script: str) -> ConfigMap:
    return ConfigMap(metadata=desired.metadata(names.mysql_init(desired.name)), data={SCRIPT_KEY: script})


def merged_properties(desired: Desired, internal: str | None, user: str | None) -> str:
    """Internal settings, then the user's: for a repeated key the last value counts.

    Without an `internalConfigRef` the internal part is ours, which reads the same environment as the image's own file.
    """
    parts = ["# ===== Internal Configuration =====", base_properties(desired) if internal is None else internal, ""]
    parts += ["# ===== User Configuration =====", user or ""]
    if desired.spec.config:
        parts += ["# ===== spec.config =====", desired.spec.config]
    if lines := tls_properties(desired):
        parts += ["# ===== spec.tls =====", *lines]
    return "\n".join(parts).rstrip("\n") + "\n"


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
