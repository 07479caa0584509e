"""The operators under test, as child processes, and what the system says of their cost."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

PEERS = Path(__file__).parent / "peers"
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Peer:
    """One framework's operator: how it is started, and what must have been built for it."""

    name: str
    command: tuple[str, ...]
    needs: Path
    environment: tuple[tuple[str, str], ...] = ()


_OURS = PEERS / "konverge" / "op.py"
KONVERGE = Peer("konverge", (sys.executable, str(_OURS)), _OURS)
_GO = PEERS / "go-controller-runtime" / "bin" / "typed"
_RUST = PEERS / "kube-rs" / "target" / "release" / "bench"
_KOPF = PEERS / "kopf" / "v" / "bin" / "kopf"
OTHERS = (
    Peer("konverge apply", (sys.executable, str(_OURS)), _OURS, (("BENCH_APPLY", "1"),)),
    Peer("controller-runtime", (str(_GO),), _GO),
    Peer("kube-rs", (str(_RUST),), _RUST),
    Peer("kube-rs tuned", (str(_RUST),), _RUST, (("BENCH_STRIP", "1"), ("BENCH_STREAMING", "1"))),
    Peer(
        "kopf",
        (str(_KOPF), "run", "--namespace", "bench", "--standalone", "--quiet", str(PEERS / "kopf" / "op.py")),
        _KOPF,
    ),
)


def built() -> list[Peer]:
    """Ourselves, and the peers that `make bench-peers` has built."""
    return [KONVERGE, *(peer for peer in OTHERS if peer.needs.exists())]


class Operator:
    """A running operator. Its output is read for the line that says that everything is reconciled."""

    def __init__(self, peer: Peer, kubeconfig: Path, count: int) -> None:
        self._peer = peer
        self._environment = {
            **os.environ,
            **dict(peer.environment),
            "KUBECONFIG": str(kubeconfig),
            "BENCH_N": str(count),
            "BENCH_NS": "bench",
        }
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)  # a program is compiled once, not at every start

    async def __aenter__(self) -> Self:
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed on exit
        self.process = await asyncio.create_subprocess_exec(
            *self._peer.command,
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=self._log,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.returncode is None:
            self.process.terminate()
            try:
                await asyncio.wait_for(self.process.wait(), 10)
            except TimeoutError:
                self.process.kill()
                await self.process.wait()
        self._log.close()

    async def all_synced(self, limit: float) -> None:
        """Until the operator says that it has reconciled everything once."""
        assert self.process.stdout is not None
        async with asyncio.timeout(limit):
            async for line in self.process.stdout:
                if b"ALLSYNCED" in line:
                    return
        self._log.seek(0)
        raise RuntimeError(f"{self._peer.name} ended: {self._log.read()[-2000:].decode(errors='replace')}")

    def cpu(self) -> float:
        """User and system seconds so far, children that have ended included."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return sum(int(field) for field in fields[11:15]) / TICKS

    def megabytes(self, key: str) -> float:
        """VmRSS (now) or VmHWM (peak)."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(key))
