"""The operator's account may do what the operator does."""

from __future__ import annotations

from collections.abc import Iterator

from konverge.check.model import Alarm, Run
from konverge.check.reference import Reference


def permissions(run: Run, reference: Reference) -> Iterator[Alarm]:
    """One alarm per verb and resource that was forbidden."""
    known = set() if run is reference.run else {(verb, resource) for verb, resource, _ in _forbidden(reference.run)}
    for verb, resource, message in _forbidden(run):
        if (verb, resource) not in known:
            known.add((verb, resource))
            yield Alarm(
                oracle="permissions",
                severity="high",
                object="operator",
                field=f"{verb} {resource.removeprefix('/')}",
                sentence=f"the operator's account may not {verb} {resource.removeprefix('/')}: {message[:160]}",
            )


def _forbidden(run: Run) -> Iterator[tuple[str, str, str]]:
    """Refusals by authorization; a quota or a namespace that goes away is another matter.

    Paths that are no resources, and kinds that are not there, are asked for to learn what a cluster is (OpenShift, a
    certificate manager): who may not, is answered by 403 there as well, and a permission would give it a 404.
    """
    for exchange in run.exchanges:
        if exchange.status == 403 and exchange.served and " cannot " in exchange.error:
            yield exchange.verb, exchange.resource, exchange.error
