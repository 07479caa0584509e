"""Go's crypto/tls: why a certificate and its key cannot be used."""

from __future__ import annotations

import re

_PEM = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----\s.*?-----END \1-----", re.DOTALL)


def key_pair_error(certificate: bytes, key: bytes) -> str:
    """The error of X509KeyPair as far as the PEM blocks show it, or ""."""
    blocks = [match[1].decode() for match in _PEM.finditer(certificate)]
    if not any(block == "CERTIFICATE" for block in blocks):
        return _no_certificate(blocks)
    key_blocks = [match[1].decode() for match in _PEM.finditer(key)]
    if any(block == "PRIVATE KEY" or block.endswith(" PRIVATE KEY") for block in key_blocks):
        return ""
    return _no_key(key_blocks)


def _no_certificate(blocks: list[str]) -> str:
    if not blocks:
        return "tls: failed to find any PEM data in certificate input"
    if len(blocks) == 1 and blocks[0].endswith("PRIVATE KEY"):
        return (
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; "
            "PEM inputs may have been switched"
        )
    listed = " ".join(blocks)
    return (
        'tls: failed to find "CERTIFICATE" PEM block in certificate input '
        f"after skipping PEM blocks of the following types: [{listed}]"
    )


def _no_key(blocks: list[str]) -> str:
    if not blocks:
        return "tls: failed to find any PEM data in key input"
    if len(blocks) == 1 and blocks[0] == "CERTIFICATE":
        return "tls: found a certificate rather than a key in the PEM for the private key"
    listed = " ".join(blocks)
    return (
        'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input '
        f"after skipping PEM blocks of the following types: [{listed}]"
    )
