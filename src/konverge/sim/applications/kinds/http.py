"""`kind: http`: a table of method and path to answers, with variables that requests set and answers depend on."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from konverge.sim.applications.application import HttpApplication, Member, Obj
from konverge.sim.applications.values import fill_in_document
from konverge.wire.message import Headers, Request, Response

if TYPE_CHECKING:
    from konverge.sim.applications.simulation import Reply, ServerRule


class HttpTable(HttpApplication):
    """Answers by the first line of its table that matches; 404 when none does."""

    def configure(self, rule: ServerRule) -> None:
        self._table = rule.table

    async def answer(self, member: Member, request: Request) -> Response:
        variables: Obj = self.state.setdefault("variables", {})
        path = request.target.partition("?")[0]
        for line in self._table:
            target = request.target if "?" in line.path else path
            if (
                fnmatchcase(request.method, line.method.upper())
                and fnmatchcase(target, line.path)
                and all(variables.get(name, "") == value for name, value in line.when.items())
            ):
                return self._by(line, member, request, variables)
        return Response(404, body=b"no line of the table of this stand-in matches")

    def _by(self, line: Reply, member: Member, request: Request, variables: Obj) -> Response:
        references: dict[str, Any] = {"pod": member.pod, "var": variables, "body": _document(request.body)}
        for name, text in line.set.items():
            variables[name] = fill_in_document(text, references)
        if line.set:
            self.changed()
        headers = {"content-type": "application/json", **{name.lower(): text for name, text in line.headers.items()}}
        return Response(line.status, Headers.of(headers), fill_in_document(line.body, references).encode())


def _document(body: bytes) -> Any:
    try:
        return json.loads(body) if body else {}
    except ValueError:
        return {}
