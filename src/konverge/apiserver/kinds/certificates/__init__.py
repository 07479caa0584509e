"""certificates.k8s.io: CertificateSigningRequest, ClusterTrustBundle, PodCertificateRequest."""

from konverge.apiserver.kinds.certificates.bundles import POD_CERTIFICATE_REQUEST, TRUST_BUNDLE
from konverge.apiserver.kinds.certificates.requests import REQUEST

STRATEGIES = {
    "CertificateSigningRequest": REQUEST,
    "ClusterTrustBundle": TRUST_BUNDLE,
    "PodCertificateRequest": POD_CERTIFICATE_REQUEST,
}
