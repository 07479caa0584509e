"""The settings of authentication."""

from __future__ import annotations

from pathlib import Path

import msgspec

ISSUER = "https://kubernetes.default.svc.cluster.local"


class AuthSettings(msgspec.Struct, frozen=True, kw_only=True):
    issuer: str = ISSUER
    """Of the tokens of service accounts. The default is what most clusters use."""
    audiences: tuple[str, ...] = ()
    """Whom tokens are for, unless they say so themselves; empty means the issuer."""
    signing_key: Path | None = None
    """PEM of the private key that signs tokens; without it a key is generated and kept in the data directory."""
    verification_keys: tuple[Path, ...] = ()
    """PEM of further keys (private or public) whose tokens are accepted."""
    token_file: Path | None = None
    """Lines of `token,user,uid,"group1,group2"`, as kube-apiserver's --token-auth-file."""
    always_allow: bool = False
    """Every authenticated user may do everything, as with kube-apiserver's --authorization-mode=AlwaysAllow."""
    anonymous: bool = True
    """Requests without credentials are those of system:anonymous; otherwise they are refused."""

    @property
    def own_audiences(self) -> tuple[str, ...]:
        return self.audiences or (self.issuer,)
