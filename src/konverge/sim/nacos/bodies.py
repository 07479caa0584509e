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
    """The list of members as this one sees it. Its order is not stable on real servers; here it is that of the list."""
    return [entry(ensemble, member, address) for address in member.settings.members]


def entry(ensemble: Ensemble, member: Member, address: str) -> dict[str, Any]:
    state, failures, version, leaders = ensemble.entry(member, address)
    host, _, port = address.rpartition(":")
    line = member.settings.line
    ability: dict[str, Any] = {"supportRemoteConnection": True}
    if line >= (2, 3):
        ability["grpcReportEnabled"] = True
    made: dict[str, Any] = {
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
        made["grpcReportEnabled"] = True
    return made


def _extended(member: Member, address: str, version: str | None, leaders: dict[str, Leader] | None) -> dict[str, Any]:
    port = raft(address).rpartition(":")[2]
    made: dict[str, Any] = {"raftPort": port, "readyToUpgrade": True}
    if version is None:
        return made
    made |= {"lastRefreshTime": int(clock.now() * 1000), "version": version}
    if member.settings.line >= (2, 5):
        made["supportGrayModel"] = True
    if leaders is not None:
        made["raftMetaData"] = {"metaDataMap": {group: _group(member, group, one) for group, one in leaders.items()}}
    return made


def _group(member: Member, group: str, leader: Leader) -> dict[str, Any]:
    return {
        "leader": leader.address,
        "raftGroupMember": [raft(address) for address in sorted(member.named.get(group, member.peers))],
        "term": leader.term,
    }


def state(settings: Settings, *, needs_admin: bool) -> dict[str, Any]:
    """The state of a server, without the settings that say nothing to an operator."""
    made: dict[str, Any] = {
        "version": settings.version,
        "startup_mode": "standalone" if settings.standalone else "cluster",
        "function_mode": None,
        "server_port": str(settings.port),
        "auth_enabled": _word(settings.auth),
        "auth_system_type": "nacos",
        "login_page_enabled": _word(settings.auth),
        "console_ui_enabled": "true",
        "datasource_platform": settings.platform,
        "config_retention_days": "30",
        "plugin_datasource_log_enabled": "false",
        "maxContent": "10485760",
        "defaultMaxSize": "102400",
    }
    if settings.line >= (2, 4):
        made["auth_admin_request"] = _word(needs_admin)
    return made


def _word(value: bool) -> str:
    return "true" if value else "false"


def result(data: Any, *, code: int = 0, message: str | None = "success") -> dict[str, Any]:
    """The envelope of v2 and v3."""
    return {"code": code, "message": message, "data": data}


def spring(status: int, error: str, message: str, path: str) -> dict[str, Any]:
    """The envelope that Spring puts around errors."""
    return {"timestamp": times.micro_now(), "status": status, "error": error, "message": message, "path": path}


def gone(path: str, instead: str) -> dict[str, Any]:
    """How 3.x speaks of an API of 2.x."""
    words = (
        f'{{"code":40000,"message":"Current API will be deprecated, please use API(s) `{instead}` instead, or set '
        '`nacos.core.api.compatibility.console.enabled=true` in application.properties."}'
    )
    return spring(410, "Gone", words, path)
