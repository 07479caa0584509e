"""The bodies of answers, shaped as recorded from real servers of each line."""

from __future__ import annotations

from typing import Any

from konverge import clock
from konverge.objects import times
from konverge.operators.nacos.server import Leader
from konverge.sim.nacos.ensemble import Ensemble
from konverge.sim.nacos.member import Member
from konverge.sim.nacos.settings import Settings, raft


def members(ensemble: Ensemble, member: Member) -> list[dict[str, Any]]:
    """The members as this one sees them. Their order is not stable on real servers; here it is that of the list."""
    return [entry(ensemble, member, address) for address in member.listed]


def entry(ensemble: Ensemble, member: Member, address: str) -> dict[str, Any]:
    state, failures, version, leaders = ensemble.entry(member, address)
    host, _, port = address.rpartition(":")
    line = member.settings.line
    ability: dict[str, Any] = {"supportRemoteConnection": True}
    if line >= (2, 3):
        ability["grpcReportEnabled"] = True
    body: dict[str, Any] = {
        "ip": host,
        "port": int(port),
        "state": state,
        "extendInfo": _extended(ensemble.members.get(address, member), address, version, leaders),
        "address": address,
        "failAccessCnt": failures,
        "abilities": {
            "remoteAbility": ability,
            "configAbility": {"supportRemoteMetrics": False},
            "namingAbility": {"supportJraft": True},
        },
    }
    if line >= (2, 2, 1):
        body["grpcReportEnabled"] = True
    return body


def _extended(member: Member, address: str, version: str | None, leaders: dict[str, Leader] | None) -> dict[str, Any]:
    port = raft(address).rpartition(":")[2]
    info: dict[str, Any] = {"raftPort": port, "readyToUpgrade": True}
    if version is None:
        return info
    info |= {"lastRefreshTime": int(clock.now() * 1000), "version": version}
    if member.settings.line >= (2, 5):
        info["supportGrayModel"] = True
    if leaders is not None:
        groups = {group: _group(member, group, leader) for group, leader in leaders.items()}
        info["raftMetaData"] = {"metaDataMap": groups}
    return info


def _group(member: Member, group: str, leader: Leader) -> dict[str, Any]:
    return {
        "leader": leader.address,
        "raftGroupMember": [raft(address) for address in sorted(member.named.get(group, member.peers))],
        "term": leader.term,
    }


def state(settings: Settings, *, needs_admin: bool) -> dict[str, Any]:
    """The state of a server, without the settings that an operator does not read."""
    body: dict[str, Any] = {
        "version": settings.version,
        "startup_mode": "standalone" if settings.standalone else "cluster",
        "function_mode": None,
        "server_port": str(settings.port),
        "auth_enabled": _boolean(settings.auth),
        "auth_system_type": "nacos",
        "login_page_enabled": _boolean(settings.auth),
        "console_ui_enabled": "true",
        "datasource_platform": settings.platform,
        "config_retention_days": "30",
        "plugin_datasource_log_enabled": "false",
        "maxContent": "10485760",
        "defaultMaxSize": "102400",
    }
    if settings.line >= (2, 4):
        body["auth_admin_request"] = _boolean(needs_admin)
    return body


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def result(data: Any, *, code: int = 0, message: str | None = "success") -> dict[str, Any]:
    """The envelope of v2 and v3."""
    return {"code": code, "message": message, "data": data}


def spring(status: int, error: str, message: str, path: str) -> dict[str, Any]:
    """The envelope that Spring puts around errors."""
    return {"timestamp": times.micro_now(), "status": status, "error": error, "message": message, "path": path}


def gone(path: str, instead: str) -> dict[str, Any]:
    """The answer of 3.x for an API of 2.x."""
    message = (
        f'{{"code":40000,"message":"Current API will be deprecated, please use API(s) `{instead}` instead, or set '
        '`nacos.core.api.compatibility.console.enabled=true` in application.properties."}'
    )
    return spring(410, "Gone", message, path)
