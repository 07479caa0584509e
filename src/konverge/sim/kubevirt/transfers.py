"""How data comes into a claim: an importer, a clone or an upload, step by step, with what can go wrong on the way."""

from __future__ import annotations

from math import inf
from typing import Any

from konverge.objects.meta import ObjectMeta
from konverge.runtime import Context
from konverge.sim.kubevirt.faults import Faults
from konverge.sim.kubevirt.kinds import DataVolume, set_condition
from konverge.sim.kubevirt.timings import Pace, Span, Timings

UPLOADED = "sim.konverge.dev/uploaded"
"""The annotation of a DataVolume that says that data has been uploaded into it."""
_CLONES = ("pvc", "snapshot")
_LOOKS = 4
"""How often progress is reported."""
_TOLD = {
    "Pending": "",
    "Succeeded": "Successfully imported into PVC {name}",
    "Failed": "Import into {name} failed",
    "PendingPopulation": "PVC {name} Pending Population",
    "WaitForFirstConsumer": "PVC {name} waiting for first consumer",
}


def phase(ctx: Context[DataVolume], word: str) -> None:
    """Write it into the status, and emit one Event."""
    status, name = ctx.obj.status, ctx.obj.metadata.name
    if status.get("phase") == word:
        return
    status["phase"] = word
    text = _TOLD.get(word, "{name} is {word}").format(name=name, word=word)
    if word != "Succeeded":
        set_condition(status, "Ready", False, "TransferRunning" if "Progress" in word else word)
    if text:
        reason = {"Succeeded": "ImportSucceeded", "Failed": "ImportFailed"}.get(word, word)
        ctx.event(reason, text, type="Warning" if word == "Failed" else "Normal")


class Transfers:
    """Where a transfer is, and when it goes on. Steps belong to the claim: another claim starts from the beginning."""

    def __init__(self, pace: Pace, timings: Timings) -> None:
        self._pace = pace
        self._timings = timings

    def advance(self, ctx: Context[DataVolume], claim: ObjectMeta, source: str, wrong: Faults) -> float:
        """0: it is done; infinity: nothing will happen by itself."""
        if source == "blank":
            return 0.0
        verb = "Clone" if source in _CLONES else "Upload" if source == "upload" else "Import"
        left = self._pace.left(claim, "scheduled", self._timings.importer)
        if left:
            phase(ctx, f"{verb}Scheduled")
            return left
        if verb == "Upload":
            return self._upload(ctx)
        phase(ctx, f"{verb}InProgress")
        if "import-fatal" in wrong:
            return self._fail(ctx, "Unable to process data: checksum mismatch")
        if "import-404" in wrong:
            return self._restart(ctx, claim)
        return self._progress(ctx, claim, self._timings.transfer if verb == "Import" else self._timings.clone)

    def _upload(self, ctx: Context[DataVolume]) -> float:
        if UPLOADED in ctx.obj.metadata.annotations:
            return 0.0
        phase(ctx, "UploadReady")
        set_condition(ctx.obj.status, "Running", True, "Pod is running")
        return inf

    def _fail(self, ctx: Context[DataVolume], why: str) -> float:
        phase(ctx, "Failed")
        set_condition(ctx.obj.status, "Running", False, "Error", why)
        return inf

    def _restart(self, ctx: Context[DataVolume], claim: ObjectMeta) -> float:
        """The phase stays, the count grows, and only the Running condition says why."""
        status: dict[str, Any] = ctx.obj.status
        count = int(status.get("restartCount", 0))
        left = self._pace.left(claim, f"restart {count}", self._timings.restart)
        if left == 0:
            count = status["restartCount"] = count + 1
            left = self._pace.left(claim, f"restart {count}", self._timings.restart)
        why = "Unable to connect to http data source: expected status code 200, got 404. Status: 404 Not Found"
        set_condition(status, "Running", False, "Error", why)
        status["progress"] = "N/A"
        return left

    def _progress(self, ctx: Context[DataVolume], claim: ObjectMeta, span: Span) -> float:
        status: dict[str, Any] = ctx.obj.status
        step = f"transfer {status.get('restartCount', 0)}"
        left, whole = self._pace.left(claim, step, span), self._pace.draw(claim, step, span)
        set_condition(status, "Running", True, "Pod is running")
        if left == 0:
            return 0.0
        status["progress"] = f"{100 * min(1 - left / whole, 0.9999):.2f}%"
        return min(left, whole / _LOOKS)
