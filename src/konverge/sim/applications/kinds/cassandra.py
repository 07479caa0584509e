"""`kind: cassandra`: the management API beside each Cassandra, as far as cass-operator calls it.

A pod is not ready until the operator starts its node (POST /api/v0/lifecycle/start), as with the real API; with the
setting `started: true` nodes start by themselves. A node that is decommissioned is shown as LEAVING once, and as LEFT
from then on. Fault `error`: 500 to every request; `wrong`: no node is shown.
"""

from __future__ import annotations

import json
import uuid
from urllib.parse import parse_qs, urlsplit

from konverge.sim.applications.application import HttpApplication, Member, Obj
from konverge.wire.message import Headers, Request, Response

_PREFIX = "/api/v0/"
_IDENTITIES = uuid.UUID("5f1c2f0e-7b53-4a0c-9d5e-2c8f8f6f3c11")
STOPPED, NORMAL, LEAVING, LEFT = "STOPPED", "NORMAL", "LEAVING", "LEFT"


class CassandraManagement(HttpApplication):
    """One datacenter."""

    ports = (8080,)

    @property
    def _nodes(self) -> dict[str, Obj]:
        nodes: dict[str, Obj] = self.state.setdefault("nodes", {})
        return nodes

    def joined(self, member: Member) -> None:
        uid = member.pod["metadata"]["uid"]
        node = self._nodes.get(member.name)
        if node is not None and (node["uid"], node["address"]) == (uid, member.address):
            return
        own = str(uuid.uuid5(_IDENTITIES, f"{member.namespace}/{member.name}"))
        self._nodes[member.name] = {
            "uid": uid,
            "address": member.address,
            "host": node["host"] if node is not None else own,
            "status": NORMAL if member.settings.get("started") else STOPPED,
        }
        self.changed()

    def ready(self, member: Member) -> bool:
        if member.settings.get("started"):
            return True
        node = self._nodes.get(member.name)
        return node is not None and node["uid"] == member.pod["metadata"]["uid"] and node["status"] != STOPPED

    # -------------------------------------------------------------- requests

    async def answer(self, member: Member, request: Request) -> Response:
        target = urlsplit(request.target)
        node = self._nodes[member.name]
        query = {name: values[0] for name, values in parse_qs(target.query).items()}
        match (request.method, target.path.removeprefix(_PREFIX)):
            case "GET", "metadata/endpoints":
                return _json({"entity": self._endpoints()})
            case "GET", "metadata/versions/release":
                return _text(200, str(member.settings.get("version", "3.11.7")))
            case "GET", "probes/liveness":
                return _text(200)
            case "GET", "probes/readiness" | "probes/cluster":
                return _text(200 if node["status"] != STOPPED else 500)
            case "POST", "lifecycle/start":
                self._turn(member, NORMAL)
                return _text(201)
            case "POST", "lifecycle/stop":
                self._turn(member, STOPPED)
                return _text(200)
            case "POST", "ops/node/decommission":
                self._turn(member, LEAVING)
                return _text(200)
            case "POST", "ops/auth/role":
                self.state.setdefault("roles", {})[query.get("username", "")] = query.get("password", "")
                self.changed()
                return _text(200)
            case "POST", "ops/keyspace/create" | "ops/keyspace/alter":
                return self._keyspace(request)
            case "POST", "ops/node/drain" | "ops/seeds/reload" | "ops/keyspace/cleanup" | "ops/keyspace/refresh":
                return _text(200)
        return _text(404, f"the stand-in has no {request.method} {target.path}")

    async def answer_wrong(self, member: Member, request: Request) -> Response:
        return _json({"entity": []})

    def _turn(self, member: Member, status: str) -> None:
        self._nodes[member.name]["status"] = status
        self.changed()
        self.around.look_at(member)

    def _keyspace(self, request: Request) -> Response:
        try:
            document = json.loads(request.body)
            self.state.setdefault("keyspaces", {})[document["keyspace_name"]] = document["replication_settings"]
        except (ValueError, KeyError, TypeError):
            return _text(400, "a keyspace has `keyspace_name` and `replication_settings`")
        self.changed()
        return _text(200)

    def _endpoints(self) -> list[Obj]:
        shown = []
        for node in self._nodes.values():
            if node["status"] == STOPPED:
                continue
            running = any(member.address == node["address"] for member in self.members.values())
            entry = {"HOST_ID": node["host"], "IS_ALIVE": str(running).lower(), "LOAD": "76543.0"}
            addresses = dict.fromkeys(("ENDPOINT_IP", "RPC_ADDRESS", "NATIVE_TRANSPORT_ADDRESS"), node["address"])
            shown.append({**entry, **addresses, "STATUS": f"{node['status']},-9223372036854775808"})
            if node["status"] == LEAVING:
                node["status"] = LEFT
                self.changed()
        return shown


def _text(status: int, text: str = "OK") -> Response:
    return Response(status, Headers.of({"content-type": "text/plain"}), text.encode())


def _json(document: Obj) -> Response:
    return Response(200, Headers.of({"content-type": "application/json"}), json.dumps(document).encode())
