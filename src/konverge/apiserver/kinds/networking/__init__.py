"""networking.k8s.io: Ingress, IngressClass, NetworkPolicy, IPAddress, ServiceCIDR."""

from konverge.apiserver.kinds.networking.addresses import IP_ADDRESS, SERVICE_CIDR
from konverge.apiserver.kinds.networking.ingresses import INGRESS, INGRESS_CLASS
from konverge.apiserver.kinds.networking.policies import NETWORK_POLICY

STRATEGIES = {
    "Ingress": INGRESS,
    "IngressClass": INGRESS_CLASS,
    "NetworkPolicy": NETWORK_POLICY,
    "IPAddress": IP_ADDRESS,
    "ServiceCIDR": SERVICE_CIDR,
}
