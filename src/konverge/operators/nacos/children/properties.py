"""The application.properties that takes the place of the image's own, line by line from the same environment.

Mounting a file over the image's loses what that one said, so everything that an image's environment can switch is here
again. Passwords stay in the environment: the file only names the variables.
"""

from __future__ import annotations

from konverge.operators.nacos.wish import Wish

POSTGRES_CA = "/home/nacos/postgres-ca"
CA_KEY = "ca.crt"
DB_USER, DB_PASSWORD = "NACOS_DB_USER", "NACOS_DB_PASSWORD"

_MYSQL_PARAMETERS = (
    "characterEncoding=utf8&connectTimeout=1000&socketTimeout=3000&autoReconnect=true&useSSL=false"
    "&allowPublicKeyRetrieval=true"
)
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


def base_properties(wish: Wish) -> str:
    """What the servers need to start, before the user says anything."""
    server = _SERVER_3 if wish.third else _SERVER_2
    return "\n".join(part for part in (server, _COMMON, _database(wish)) if part)


def _database(wish: Wish) -> str:
    if wish.engine == "mysql":
        host = "${MYSQL_SERVICE_HOST}:${MYSQL_SERVICE_PORT:3306}/${MYSQL_SERVICE_DB_NAME}"
        url = f"jdbc:mysql://{host}?${{MYSQL_SERVICE_DB_PARAM:{_MYSQL_PARAMETERS}}}"
        return _lines("mysql", url, "MYSQL_SERVICE_USER", "MYSQL_SERVICE_PASSWORD")
    if wish.engine == "postgresql":
        postgres = wish.spec.postgres
        host = f"[{postgres.host}]" if ":" in postgres.host else postgres.host
        url = f"jdbc:postgresql://{host}:{postgres.port}/{postgres.database}?sslmode={postgres.tls.mode}"
        if postgres.tls.ca_secret_ref is not None:
            url += f"&sslrootcert={POSTGRES_CA}/{postgres.tls.ca_secret_ref.key or CA_KEY}"
        driver = "db.pool.config.driverClassName=org.postgresql.Driver"
        test = "db.pool.config.connectionTestQuery=SELECT 1"
        lines = _lines("postgresql", f"{url}&{_POSTGRES_PARAMETERS}", DB_USER, DB_PASSWORD)
        return "\n".join((lines, driver, test))
    return ""


def _lines(platform: str, url: str, user: str, password: str) -> str:
    """Both names of the platform: the second is the one that servers before 2.2 read."""
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
