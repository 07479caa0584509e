"""How many requests were made, by verb and by program: counted where an extension asks for it (`Extensions.counts`)."""

from __future__ import annotations

from collections import Counter

from konverge.wire.message import Request

PROGRAMS = 64
"""Programs that are told apart: a client may call itself what it likes, each time something else."""
OTHERS = "other"
UNNAMED = "unnamed"
_LONGEST = 60
_METRIC_VERBS = {"create": "POST", "update": "PUT", "deletecollection": "DELETECOLLECTION"}


class RequestCounts:
    """Totals since the start of the server; only ever growing."""

    def __init__(self) -> None:
        self.verbs: Counter[str] = Counter()
        """As roles name them: get, list, watch, create, …"""
        self.programs: Counter[str] = Counter()
        """By the product that `User-Agent` names first."""

    def note(self, verb: str, request: Request) -> None:
        self.verbs[verb] += 1
        program = request.headers.get("user-agent").partition("/")[0].strip()[:_LONGEST] or UNNAMED
        if program not in self.programs and len(self.programs) >= PROGRAMS:
            program = OTHERS
        self.programs[program] += 1

    def exposition(self) -> list[str]:
        """Lines of Prometheus text. Upstream: apiserver_request_total, of whose labels this has the verb."""
        lines = ["# HELP apiserver_request_total Requests, by verb.", "# TYPE apiserver_request_total counter"]
        for verb, count in sorted(self.verbs.items()):
            lines.append(f'apiserver_request_total{{verb="{_METRIC_VERBS.get(verb, verb.upper())}"}} {count}')
        return lines
