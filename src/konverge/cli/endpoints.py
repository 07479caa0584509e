"""Where everything of a cluster is, for people and for machines, and what to try next."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

IN_MEMORY = "in memory, gone when this ends"


class Endpoints(msgspec.Struct, frozen=True, kw_only=True):
    """What `konverge up` started. Empty: there is no such thing."""

    url: str
    kubeconfig: Path
    nodes: int
    state: str
    name: str = ""
    seed: int = 0
    """What is chance in simulated servers comes from it."""
    operators: tuple[str, ...] = ()
    metrics: str = ""
    console: str = ""
    console_link: str = ""
    """Signs a browser in, once."""
    console_token: str = ""
    """The file with a token, for programs."""
    context: str = ""
    """The context in the user's own kubeconfig."""
    merged: str = ""
    """The user's own kubeconfig, if it has the context."""

    def facts(self) -> dict[str, Any]:
        """One JSON object."""
        return {"ready": True, **msgspec.structs.asdict(self), "kubeconfig": str(self.kubeconfig)}

    @classmethod
    def of(cls, facts: dict[str, Any]) -> Endpoints:
        """What another process printed as facts."""
        kept = {key: value for key, value in facts.items() if key != "ready"}
        return cls(**{**kept, "kubeconfig": Path(facts["kubeconfig"]), "operators": tuple(facts["operators"])})

    def welcome(self, ended_by: str = "Ctrl-C ends it.") -> str:
        """The first line is `ready URL`: tools wait for it."""
        rows = {
            "kubeconfig": str(self.kubeconfig),
            "context": f"{self.context} in {self.merged}" if self.merged else "",
            "nodes": f"{self.nodes}, simulated",
            "seed": f"{self.seed} (--seed)",
            "state": self.state,
            "operators": ", ".join(self.operators),
            "metrics": self.metrics,
            "console": f"{self.console_link} (signs you in once; later: konverge console)" if self.console else "",
        }
        lines = [f"  {name:<11} {value}" for name, value in rows.items() if value]
        tries = [f"  {line}" for line in self._next()]
        return "\n".join([f"ready {self.url}", *lines, "", "In another terminal:", *tries, "", ended_by])

    def _next(self) -> Sequence[str]:
        export = f"export KUBECONFIG={shlex.quote(str(self.kubeconfig))}"
        begin = f"kubectl config use-context {self.context}" if self.merged else export
        if "webapp" in self.operators:
            return (
                begin,
                "kubectl get webapps --watch",
                "kubectl scale webapp hello --replicas=5",
                "kubectl delete deployment hello && kubectl describe webapp hello",
            )
        return (
            begin,
            "kubectl get nodes",
            "kubectl create deployment web --image=nginx --replicas=3",
            "kubectl get pods --watch",
        )
