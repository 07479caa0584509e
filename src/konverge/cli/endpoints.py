"""Where everything of `konverge up` is, for people and for machines, and what to try next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """What a newcomer needs to know. An empty text is something that there is not."""

    url: str
    kubeconfig: Path
    nodes: int
    state: str
    operators: tuple[str, ...] = ()
    metrics: str = ""
    console: str = ""
    console_token: str = ""
    """The file with a token to sign in with."""

    def facts(self) -> dict[str, Any]:
        """One JSON object."""
        return {"ready": True, **asdict(self), "kubeconfig": str(self.kubeconfig)}

    def welcome(self) -> str:
        """The first line is `ready URL`: tools wait for it."""
        rows = {
            "kubeconfig": str(self.kubeconfig),
            "nodes": f"{self.nodes}, simulated",
            "state": self.state,
            "operators": ", ".join(self.operators),
            "metrics": self.metrics,
            "console": f"{self.console} (token: {self.console_token})" if self.console else "",
        }
        lines = [f"  {name:<11} {value}" for name, value in rows.items() if value]
        tries = [f"  {line}" for line in self._next()]
        return "\n".join([f"ready {self.url}", *lines, "", "In another terminal:", *tries, "", "Ctrl-C ends it."])

    def _next(self) -> Sequence[str]:
        begin = f"export KUBECONFIG={self.kubeconfig}"
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
