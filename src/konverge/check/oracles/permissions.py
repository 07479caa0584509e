"""The operator's account may do what the operator does."""

from __future__ import annotations

from collections.abc import Iterator

from konverge.check.model import Alarm, Run
from konverge.check.oracles.history import news
from konverge.check.reference import Reference


def permissions(run: Run, reference: Reference) -> Iterator[Alarm]:
    """One alarm per verb and resource that was forbidden."""
    return news(_forbidden, run, reference)


def _forbidden(run: Run) -> Iterator[Alarm]:
    """Refusals by authorization; a quota or a namespace that goes away is another matter.

    Paths that are no resources, and kinds that are not there, are asked for to learn what a cluster is (OpenShift, a
    certificate manager): who may not, is answered by 403 there as well, and a permission would give it a 404.
    """
    for exchange in run.exchanges:
        if exchange.status == 403 and exchange.served and " cannot " in exchange.error:
            what = f"{exchange.verb} {exchange.resource.removeprefix('/')}"
            yield Alarm(
                oracle="permissions",
                severity="high",
                object="operator",
                field=what,
                sentence=f"the operator's account may not {what}: {exchange.error[:160]}",
            )
