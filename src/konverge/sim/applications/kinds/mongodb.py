"""`kind: mongodb`: one replica set, as far as operators steer it: initiate, reconfigure, status, users and roles.

    servers:
      - {kind: mongodb, container: mongod, group: "{owner.metadata.name}", with: {set: rs0}}
    exec:
      - {container: mongod, server: mongodb}

Clients prove their passwords by SCRAM-SHA-256, so an operator that mixes up its users is locked out as it would be. The
shell's `rs.initiate` and `createUser` work by exec. The first running member by name is the primary. With `eager: true`
a server that belongs to no set yet says at once that it is a primary of `set`, where a real one would keep clients
waiting. Documents themselves are not kept. Fault `error`: every command fails; `wrong`: no member is a primary.
"""

from __future__ import annotations

import asyncio
import re
import struct
from typing import Any

from konverge.sim.applications.application import (
    CUT,
    ERROR,
    REFUSE,
    SLOW,
    WRONG,
    Application,
    ExecAnswer,
    Member,
    Obj,
)
from konverge.sim.applications.kinds import bson
from konverge.sim.applications.kinds.bson import Document
from konverge.sim.applications.kinds.mongo_users import UserCommands
from konverge.sim.applications.kinds.scram import Conversation, Refused

VERSION = "5.0.7-6"
PRIMARY, SECONDARY, DOWN = 1, 2, 8
_NAMES = {PRIMARY: "PRIMARY", SECONDARY: "SECONDARY", DOWN: "(not reachable/healthy)"}
_OPEN = ("hello", "ismaster", "saslstart", "saslcontinue", "ping", "endsessions", "buildinfo")
"""What is answered before a client has proved who it is."""
_HOST = re.compile(r"host:\s*[\"']([^\"']+)[\"']")
_SET = re.compile(r"_id:\s*[\"']([^\"']+)[\"']")
_OK = {"ok": 1.0}


class MongoDb(Application):
    """One replica set."""

    ports = (27017,)
    faults = (REFUSE, SLOW, CUT, ERROR, WRONG)

    async def serve(self, member: Member, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session = _Session(self, member)
        while True:
            size, number, _, operation = struct.unpack("<iiii", await reader.readexactly(16))
            if not 16 < size <= bson.LONGEST:
                return
            document = bson.command(operation, await reader.readexactly(size - 16))
            writer.write(bson.answer(number, operation, session.answer(document)))
            await writer.drain()

    # -------------------------------------------------------------- the set

    @property
    def config(self) -> Obj | None:
        """The configuration of the set, once it is initiated."""
        return self.state.get("config")

    def initiate(self, name: str, host: str) -> None:
        entry = {"_id": 0, "host": host, "arbiterOnly": False, "buildIndexes": True, "hidden": False}
        self.state["config"] = {"_id": name, "version": 1, "members": [{**entry, "priority": 1, "votes": 1}]}
        self.changed()

    def reconfigure(self, config: Obj) -> None:
        self.state["config"] = config
        self.changed()

    def hosts(self) -> list[str]:
        return [entry["host"] for entry in (self.config or {}).get("members") or ()]

    def runs(self, host: str) -> Member | None:
        """The member that a host of the configuration names, while it runs: hosts begin with the name of the pod."""
        name = re.split(r"[.:]", host, maxsplit=1)[0]
        return next((member for member in self.members.values() if name in (member.name, member.address)), None)

    def primary(self) -> str:
        """The host of the primary; empty: none."""
        voting = [entry for entry in (self.config or {}).get("members") or () if entry.get("priority", 1)]
        running = sorted(entry["host"] for entry in voting if self.runs(entry["host"]) is not None)
        return running[0] if running else ""

    def host_of(self, member: Member) -> str:
        return next((host for host in self.hosts() if self.runs(host) is member), "")

    # -------------------------------------------------------------- the shell

    def exec(self, member: Member, command: list[str]) -> ExecAnswer | None:
        text = " ".join(command)
        if "mongo" not in text:
            return None
        if "rs.initiate" in text:
            name, host = _SET.search(text), _HOST.search(text)
            if self.config is not None or name is None or host is None:
                return ExecAnswer(stdout='{ "ok" : 0, "codeName" : "AlreadyInitialized" }\n')
            self.initiate(name[1], host[1])
            return ExecAnswer(stdout='{ "ok" : 1 }\n')
        if "createUser" in text:
            user, password = (re.search(rf"{field}:\s*\"([^\"]*)\"", text) for field in ("user", "pwd"))
            users: Obj = self.state.setdefault("users", {})
            if user is None or password is None or users:
                return ExecAnswer(stderr="uncaught exception: Error: couldn't add user\n", exit=252)
            users[user[1]] = {"pwd": password[1], "roles": [{"db": "admin", "role": "userAdminAnyDatabase"}]}
            self.changed()
            return ExecAnswer(stdout=f'Successfully added user: {{ "user" : "{user[1]}" }}\n')
        return ExecAnswer(stdout='{ "ok" : 1 }\n')


class _Session:
    """One connection: who the client is, and its commands."""

    def __init__(self, application: MongoDb, member: Member) -> None:
        self._application = application
        self._member = member
        self._users = UserCommands(application)
        self._conversation: Conversation | None = None
        self._known = False

    def answer(self, document: Document) -> Document:
        name = next(iter(document), "").lower()
        if self._member.fault == ERROR and name not in ("hello", "ismaster"):
            return _failure(8000, "the stand-in was asked to fail")
        if not self._known and name not in _OPEN:
            return _failure(13, f"command {name} requires authentication")
        known = getattr(self, f"_on_{name}", None)
        if known is not None:
            return dict(known(document))
        answer = self._users.answer(name, document)
        if answer is not None:
            return answer
        return _by_default(name) or _failure(59, f"no such command: '{name}'")

    # -------------------------------------------------------------- who

    def _on_saslstart(self, document: Document) -> Document:
        passwords = {name: entry["pwd"] for name, entry in (self._application.state.get("users") or {}).items()}
        self._conversation = Conversation(passwords)
        return self._say(self._conversation.first(document["payload"].decode()), done=False)

    def _on_saslcontinue(self, document: Document) -> Document:
        if self._known:
            return self._say("", done=True)
        try:
            assert self._conversation is not None
            proof = self._conversation.last(document["payload"].decode())
        except (Refused, AssertionError):
            return _failure(18, "Authentication failed.")
        self._known = True
        return self._say(proof, done=True)

    def _say(self, text: str, *, done: bool) -> Document:
        return {"conversationId": 1, "done": done, "payload": text.encode(), **_OK}

    # -------------------------------------------------------------- the set

    def _on_ismaster(self, document: Document) -> Document:
        application, member = self._application, self._member
        answer: Document = {
            "maxBsonObjectSize": 16777216,
            "maxMessageSizeBytes": 48000000,
            "maxWriteBatchSize": 100000,
            "minWireVersion": 0,
            "maxWireVersion": 13,
            "readOnly": False,
            **_OK,
        }
        if "saslSupportedMechs" in document:
            answer["saslSupportedMechs"] = ["SCRAM-SHA-256"]
        own, primary = application.host_of(member), application.primary()
        if member.fault == WRONG:
            return {"ismaster": False, "secondary": bool(own), "setName": self._set(), **answer}
        if own:
            shown = {"hosts": application.hosts(), "setName": self._set(), "me": own, "primary": primary}
            return {"ismaster": own == primary, "secondary": own != primary, **shown, **answer}
        if application.config is None and member.settings.get("eager"):
            return {"ismaster": True, "secondary": False, "setName": self._set(), **answer}
        return {"ismaster": False, "secondary": False, "isreplicaset": True, **answer}

    _on_hello = _on_ismaster

    def _set(self) -> str:
        config = self._application.config
        return str(config["_id"] if config else self._member.settings.get("set", "rs0"))

    def _on_replsetgetconfig(self, document: Document) -> Document:
        config = self._application.config
        return {"config": config, **_OK} if config else _failure(94, "no replset config has been received")

    def _on_replsetreconfig(self, document: Document) -> Document:
        self._application.reconfigure(document["replSetReconfig"])
        return _OK

    def _on_replsetgetstatus(self, document: Document) -> Document:
        config, primary = self._application.config, self._application.primary()
        if not config:
            return _failure(94, "no replset config has been received")
        members = []
        for entry in config["members"]:
            running = self._application.runs(entry["host"]) is not None
            state = PRIMARY if entry["host"] == primary else SECONDARY if running else DOWN
            shown = {"_id": entry["_id"], "name": entry["host"], "health": float(running)}
            members.append({**shown, "state": state, "stateStr": _NAMES[state]})
        mine = PRIMARY if self._application.host_of(self._member) == primary else SECONDARY
        return {"set": config["_id"], "myState": mine, "members": members, **_OK}

    def _on_buildinfo(self, document: Document) -> Document:
        return {"version": str(self._member.settings.get("version", VERSION)), **_OK}

    def _on_getparameter(self, document: Document) -> Document:
        version = str(self._member.settings.get("version", VERSION))
        current = self._application.state.get("fcv", ".".join(version.split(".")[:2]))
        return {"featureCompatibilityVersion": {"version": current}, **_OK}

    def _on_setfeaturecompatibilityversion(self, document: Document) -> Document:
        self._application.state["fcv"] = document["setFeatureCompatibilityVersion"]
        self._application.changed()
        return _OK


def _failure(code: int, message: str) -> Document:
    return {"ok": 0.0, "errmsg": message, "code": code}


def _by_default(name: str) -> Document | None:
    """Commands that find nothing, or do nothing that an operator would look at."""
    answers: dict[str, Any] = {
        "listdatabases": {"databases": [{"name": name} for name in ("admin", "config", "local")]},
        "listshards": {"shards": []},
        "balancerstatus": {"mode": "full"},
        "find": {"cursor": {"id": 0, "ns": "admin.none", "firstBatch": []}},
        "aggregate": {"cursor": {"id": 0, "ns": "admin.none", "firstBatch": []}},
    }
    quiet = "ping endsessions insert update delete replsetstepdown balancerstart balancerstop addshard killcursors"
    if name in quiet.split():
        return {"n": 0, **_OK}
    return {**answers[name], **_OK} if name in answers else None
