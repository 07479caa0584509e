"""What monitors ask for: health, readiness, version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from konverge.wire.message import Response

if TYPE_CHECKING:
    from konverge.apiserver.http.call import Call

VERSION = {
    "major": "1",
    "minor": "37",
    "emulationMajor": "1",
    "emulationMinor": "37",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "36",
    "gitVersion": "v1.37.1+konverge",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "",
}


async def version(call: Call) -> Response:
    return call.answer(200, VERSION)


async def healthy(call: Call) -> Response:
    return call.answer_text(200, "ok")
