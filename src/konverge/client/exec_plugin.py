"""Credentials from an exec plugin (`aws eks get-token`, `gke-gcloud-auth-plugin`, `kubelogin`, …).

The plugin is a program that prints an ExecCredential. It is run when there is no credential, when the one in hand is
about to expire, and after a 401; what it printed is kept in between. Both versions of the protocol,
`client.authentication.k8s.io/v1` and `/v1beta1`, are spoken. Upstream: client-go/plugin/pkg/client/auth/exec.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from konverge import clock
from konverge.client.credentials import Credential, Renewing, sendable
from konverge.client.errors import ConfigError, CredentialError

GROUP = "client.authentication.k8s.io"
VERSIONS = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
MODES = ("Never", "IfAvailable", "Always")
EXPIRY_LEEWAY = 10.0
"""Seconds before its expiry at which a credential is no longer used: a request takes time to arrive."""
MAX_OUTPUT = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecSpec:
    """The `exec` section of a kubeconfig user."""

    command: str
    api_version: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    install_hint: str = ""
    interactive_mode: str = "IfAvailable"
    cluster: Mapping[str, Any] | None = None
    """What the plugin receives about the cluster, when `provideClusterInfo` is set."""
    source: str = ""
    """For error texts: the user and the file that this came from."""
    timeout: float = 60.0

    def __post_init__(self) -> None:
        if self.api_version not in VERSIONS:
            raise ConfigError(
                f"{self.source}: exec.apiVersion {self.api_version!r} is not supported; "
                f"update the plugin's entry to one of {', '.join(VERSIONS)}"
            )
        if self.interactive_mode not in MODES:
            raise ConfigError(f"{self.source}: exec.interactiveMode must be one of {', '.join(MODES)}")


class _PluginStatus(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _PluginAnswer(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _PluginStatus | None = None


class ExecPlugin(Renewing):
    """Credentials that a program prints.

    plugin = ExecPlugin(ExecSpec(command="aws", args=("eks", "get-token", …), api_version=VERSIONS[0]))
    """

    def __init__(self, spec: ExecSpec) -> None:
        super().__init__()
        self.spec = spec
        self._expires = float("inf")

    def _fresh(self) -> bool:
        return clock.now() < self._expires - EXPIRY_LEEWAY

    async def _fetch(self) -> Credential:
        status = self._read(await self._run())
        expires = status.expiration_timestamp
        self._expires = expires.timestamp() if expires is not None else float("inf")
        authorization = f"Bearer {status.token}" if status.token else ""
        return Credential(authorization, status.client_certificate_data, status.client_key_data)

    async def _run(self) -> bytes:
        spec = self.spec
        interactive = self._interactive()
        try:
            process = await asyncio.create_subprocess_exec(
                self._program(),
                *spec.args,
                env=self._environment(interactive),
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=None if interactive else asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise self._failed(f"cannot be started: {error.strerror}") from error
        return await self._output_of(process)

    async def _output_of(self, process: asyncio.subprocess.Process) -> bytes:
        try:
            async with asyncio.timeout(self.spec.timeout):
                output, stderr = await process.communicate()
        except TimeoutError as error:
            raise self._failed(f"did not finish within {self.spec.timeout:g} s") from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            said = (stderr or b"").decode("utf-8", "replace").strip()[-500:]
            raise self._failed(f"failed with exit status {process.returncode}" + (f": {said}" if said else ""))
        if len(output) > MAX_OUTPUT:
            raise self._failed(f"printed more than {MAX_OUTPUT} bytes")
        return output

    def _read(self, output: bytes) -> _PluginStatus:
        try:
            answer = msgspec.json.decode(output, type=_PluginAnswer)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._failed(f"printed something other than an ExecCredential: {error}") from error
        if answer.kind != "ExecCredential" or answer.api_version != self.spec.api_version:
            raise self._failed(
                f"printed {answer.api_version} {answer.kind} where {self.spec.api_version} ExecCredential was asked for"
            )
        status = answer.status
        if status is None or not (status.token or status.client_certificate_data):
            raise self._failed("printed an ExecCredential with neither a token nor a certificate")
        if not sendable(status.token):
            raise self._failed("printed a token that no header can hold: it has line breaks or is not ASCII")
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise self._failed("printed a client certificate without its key, or a key without its certificate")
        return status

    def _interactive(self) -> bool:
        terminal = sys.stdin is not None and sys.stdin.isatty()
        if self.spec.interactive_mode == "Always" and not terminal:
            raise self._failed("needs a terminal (interactiveMode is Always), and standard input is none")
        return terminal and self.spec.interactive_mode != "Never"

    def _program(self) -> str:
        from shutil import which  # it brings three compressors: for those who have a plugin

        path = which(self.spec.command, path=self.spec.env.get("PATH"))
        if path is None:
            hint = f"\n{self.spec.install_hint.strip()}" if self.spec.install_hint else ""
            raise self._failed(f"is not installed, or not on the PATH{hint}")
        return path

    def _environment(self, interactive: bool) -> dict[str, str]:
        asked: dict[str, Any] = {"interactive": interactive}
        if self.spec.cluster is not None:
            asked["cluster"] = self.spec.cluster
        info = {"kind": "ExecCredential", "apiVersion": self.spec.api_version, "spec": asked}
        return {**os.environ, **self.spec.env, "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}

    def _failed(self, what: str) -> CredentialError:
        where = f" ({self.spec.source})" if self.spec.source else ""
        return CredentialError(f"the credential plugin {self.spec.command!r}{where} {what}")
