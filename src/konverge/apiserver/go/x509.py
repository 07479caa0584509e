"""Go's crypto/x509: why the certificate of a server was refused, in its words."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from typing import TYPE_CHECKING

from konverge import clock
from konverge.objects.times import format_time
from konverge.wire.dial import dial
from konverge.wire.tls import TlsOptions

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

_UNKNOWN_AUTHORITY = (18, 19, 20, 21)
_WRONG_TIME, _WRONG_NAME = (9, 10), (62, 64)
"""OpenSSL's numbers: X509_V_ERR_*."""
_LOOK_TIME = 5.0
_MOST_NAMES = 100


async def refusal(error: ssl.SSLCertVerificationError, address: str, server_name: str) -> str:
    """What Go says of the certificate that the server at `address` shows to who expects `server_name`."""
    if error.verify_code in _UNKNOWN_AUTHORITY:
        return "certificate signed by unknown authority"
    if error.verify_code not in (*_WRONG_TIME, *_WRONG_NAME):
        return str(error.verify_message)
    shown = await _shown(address, server_name)
    return _wrong_time(shown) if error.verify_code in _WRONG_TIME else _wrong_name(shown, server_name)


async def _shown(address: str, server_name: str) -> Certificate | None:
    """The certificate itself, by another handshake: the ssl module does not say which one it has refused. Nothing is
    sent on this connection."""
    host, _, port = address.rpartition(":")
    context = TlsOptions(insecure=True).context()
    try:
        async with asyncio.timeout(_LOOK_TIME):
            transport, _ = await dial(asyncio.Protocol, host.strip("[]"), int(port), context, server_name)
    except OSError:  # TimeoutError and SSLError are some
        return None
    data = transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
    transport.abort()
    return _read(data)


def _read(data: bytes) -> Certificate | None:
    """None if it, or one of its extensions, cannot be read: the server may show whatever it likes."""
    from cryptography import x509  # needed by few, and slow to import

    try:
        certificate = x509.load_der_x509_certificate(data)
        certificate.extensions  # noqa: B018 - they are read when they are first asked for
    except (ValueError, x509.DuplicateExtension):
        return None
    return certificate


# upstream: CertificateInvalidError (crypto/x509/verify.go)
def _wrong_time(certificate: Certificate | None) -> str:
    said = "certificate has expired or is not yet valid"
    if certificate is None:
        return said
    now = clock.utc_now()
    if now > certificate.not_valid_after_utc:
        return f"{said}: current time {format_time(now)} is after {format_time(certificate.not_valid_after_utc)}"
    if now < certificate.not_valid_before_utc:
        return f"{said}: current time {format_time(now)} is before {format_time(certificate.not_valid_before_utc)}"
    return said


# upstream: HostnameError (crypto/x509/verify.go)
def _wrong_name(certificate: Certificate | None, host: str) -> str:
    nothing = f"certificate is not valid for any names, but wanted to match {host}"
    if certificate is None:
        return nothing
    names, addresses, common = _alternatives(certificate)
    if common and _matches(common, host):
        return "certificate relies on legacy Common Name field, use SANs instead"
    if _is_address(host):
        if not addresses:
            return f"cannot validate certificate for {host} because it doesn't contain any IP SANs"
        if len(addresses) >= _MOST_NAMES:
            return f"certificate is valid for {len(addresses)} IP SANs, but none matched {host}"
        return f"certificate is valid for {', '.join(addresses)}, not {host}"
    if len(names) >= _MOST_NAMES:
        return f"certificate is valid for {len(names)} names, but none matched {host}"
    return f"certificate is valid for {', '.join(names)}, not {host}" if names else nothing


def _alternatives(certificate: Certificate) -> tuple[list[str], list[str], str]:
    """The names and the addresses that it is for; a certificate that says neither has only its Common Name."""
    from cryptography import x509

    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        commons = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        return [], [], str(commons[0].value) if commons else ""
    addresses = [str(address) for address in found.get_values_for_type(x509.IPAddress)]
    return found.get_values_for_type(x509.DNSName), addresses, ""


def _matches(pattern: str, host: str) -> bool:
    wanted, labels = pattern.lower().split("."), host.lower().rstrip(".").split(".")
    return len(wanted) == len(labels) and wanted[0] in ("*", labels[0]) and wanted[1:] == labels[1:]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
