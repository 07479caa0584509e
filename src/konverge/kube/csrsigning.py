"""Signs approved requests for certificates, for the signers of Kubernetes itself.

Who approves is the user's business (`kubectl certificate approve`). What a signer does not allow ends as Failed.
Upstream: pkg/controller/certificates/signer, pkg/controller/certificates/authority.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from konverge import clock
from konverge.objects.kinds.certificates_v1 import CertificateSigningRequest, CertificateSigningRequestCondition
from konverge.objects.times import now
from konverge.runtime import Context, Controller, Reconciler, Use

if TYPE_CHECKING:
    from cryptography.x509 import Certificate
    from cryptography.x509 import CertificateSigningRequest as Asked

LONGEST = timedelta(days=365)
"""Upstream: --cluster-signing-duration."""
_SHORTEST, _SHORT, _BACKDATED = timedelta(minutes=10), timedelta(hours=8), timedelta(minutes=5)
Authority = Callable[[], tuple[bytes, bytes]]
"""Certificate and key of who signs, in PEM; asked for when there is something to sign."""


class SigningReconciler(Reconciler[CertificateSigningRequest]):
    def __init__(self, authority: Authority) -> None:
        self._authority = cache(authority)

    # upstream: signer.handle
    async def reconcile(self, ctx: Context[CertificateSigningRequest]) -> None:
        request = ctx.obj
        verdicts = {item.type for item in request.status.conditions if item.status == "True"}
        if request.status.certificate or "Approved" not in verdicts or verdicts & {"Denied", "Failed"}:
            return
        validate = _SIGNERS.get(request.spec.signer_name)
        if validate is None:
            return
        from cryptography.x509 import load_pem_x509_csr  # most clusters never sign anything

        asked = load_pem_x509_csr(b64decode(request.spec.request))
        error = validate(asked, request.spec.usages)
        if error:
            moment = now()
            failed = CertificateSigningRequestCondition(
                type="Failed", status="True", reason="SignerValidationFailure", message=error,
                last_update_time=moment, last_transition_time=moment,
            )  # fmt: skip
            request.status.conditions = [*request.status.conditions, failed]
        else:
            signed = sign(asked, request.spec.usages, _duration(request.spec.expiration_seconds), *self._authority())
            request.status.certificate = b64encode(signed).decode()
        await ctx.save_status()


def _duration(seconds: int | None) -> timedelta:
    return LONGEST if seconds is None else min(max(timedelta(seconds=seconds), _SHORTEST), LONGEST)


# ------------------------------------------------------------------ what signers allow


def _client(asked: Asked, usages: list[str]) -> str:  # upstream: validAPIServerClientUsages
    for usage in usages:
        if usage not in ("digital signature", "key encipherment", "client auth"):
            return f"invalid usage for client certificate: {usage}"
    return "" if "client auth" in usages else "missing required usage for client certificate: client auth"


def _kubelet(asked: Asked, usages: list[str], *, serves: bool) -> str:
    """Upstream: ValidateKubeletServingCSR, ValidateKubeletClientCSR (pkg/apis/certificates/helpers.go)."""
    from cryptography.x509 import DNSName, IPAddress, RFC822Name, UniformResourceIdentifier
    from cryptography.x509.oid import NameOID

    if [item.value for item in asked.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)] != ["system:nodes"]:
        return "subject organization is not system:nodes"
    names = _alternatives(asked)
    kinds = {type(name) for name in names}
    if serves and not kinds & {DNSName, IPAddress}:
        return "DNS or IP subjectAltName is required"
    forbidden: dict[str, type] = {"Email": RFC822Name, "URI": UniformResourceIdentifier}
    if not serves:
        forbidden = {"DNS": DNSName, "Email": RFC822Name, "IP": IPAddress, "URI": UniformResourceIdentifier}
    for what, kind in forbidden.items():
        if kind in kinds:
            return f"{what} subjectAltNames are not allowed"
    common = [str(item.value) for item in asked.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if not common or not common[-1].startswith("system:node:"):
        return "subject common name does not begin with system:node:"
    needed = {"digital signature", "server auth" if serves else "client auth"}
    if set(usages) not in (needed, needed | {"key encipherment"}):
        return f"usages did not match [{' '.join(sorted(needed | {'key encipherment'}))}]"
    return ""


_SIGNERS: dict[str, Callable[[Any, list[str]], str]] = {
    "kubernetes.io/kube-apiserver-client": _client,
    "kubernetes.io/kube-apiserver-client-kubelet": lambda asked, usages: _kubelet(asked, usages, serves=False),
    "kubernetes.io/kubelet-serving": lambda asked, usages: _kubelet(asked, usages, serves=True),
}


# ------------------------------------------------------------------ the certificate

_KEY_USAGES = {
    "signing": "digital_signature", "digital signature": "digital_signature",
    "content commitment": "content_commitment", "key encipherment": "key_encipherment",
    "data encipherment": "data_encipherment", "key agreement": "key_agreement", "cert sign": "key_cert_sign",
    "crl sign": "crl_sign", "encipher only": "encipher_only", "decipher only": "decipher_only",
}  # fmt: skip
_PURPOSES = {
    "any": "2.5.29.37.0", "server auth": "1.3.6.1.5.5.7.3.1", "client auth": "1.3.6.1.5.5.7.3.2",
    "code signing": "1.3.6.1.5.5.7.3.3", "email protection": "1.3.6.1.5.5.7.3.4", "s/mime": "1.3.6.1.5.5.7.3.4",
    "ipsec end system": "1.3.6.1.5.5.7.3.5", "ipsec tunnel": "1.3.6.1.5.5.7.3.6", "ipsec user": "1.3.6.1.5.5.7.3.7",
    "timestamping": "1.3.6.1.5.5.7.3.8", "ocsp signing": "1.3.6.1.5.5.7.3.9",
    "microsoft sgc": "1.3.6.1.4.1.311.10.3.3", "netscape sgc": "2.16.840.1.113730.4.1",
}  # fmt: skip
_EVERY_KEY_USAGE = sorted(set(_KEY_USAGES.values()))


def sign(asked: Asked, usages: list[str], duration: timedelta, certificate: bytes, key: bytes) -> bytes:
    """The certificate in PEM. Upstream: PermissiveSigningPolicy.apply."""
    from cryptography import x509
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

    issuer: Certificate = x509.load_pem_x509_certificate(certificate)
    moment = clock.utc_now()
    end = moment + duration - (_BACKDATED if duration >= _SHORT else timedelta(0))
    builder = (
        x509.CertificateBuilder()
        .subject_name(asked.subject)
        .issuer_name(issuer.subject)
        .public_key(asked.public_key())
        .serial_number(clock.rng().getrandbits(128) + 1)
        .not_valid_before(moment - _BACKDATED)
        .not_valid_after(min(end, issuer.not_valid_after_utc))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    )
    granted = {_KEY_USAGES[usage] for usage in usages if usage in _KEY_USAGES}
    if granted:
        flags = {name: name in granted for name in _EVERY_KEY_USAGE}
        builder = builder.add_extension(x509.KeyUsage(**flags), critical=True)
    purposes = [x509.ObjectIdentifier(_PURPOSES[usage]) for usage in usages if usage in _PURPOSES]
    if purposes:
        builder = builder.add_extension(x509.ExtendedKeyUsage(dict.fromkeys(purposes)), critical=False)
    if names := _alternatives(asked):
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    signed = builder.sign(load_pem_private_key(key, None), SHA256())  # type: ignore[arg-type]
    return signed.public_bytes(Encoding.PEM)


def _alternatives(asked: Asked) -> list[Any]:
    from cryptography.x509 import ExtensionNotFound, SubjectAlternativeName

    try:
        return list(asked.extensions.get_extension_for_class(SubjectAlternativeName).value)
    except ExtensionNotFound:
        return []


def controllers(authority: Authority) -> list[Controller[Any]]:
    reconciler = SigningReconciler(authority)
    uses = [Use(CertificateSigningRequest, "patch")]
    return [Controller(CertificateSigningRequest, reconciler, name="csr-signing", uses=uses)]
