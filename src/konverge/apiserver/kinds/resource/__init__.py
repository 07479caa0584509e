"""resource.k8s.io: DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice."""

from konverge.apiserver.kinds.resource.claims import RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE
from konverge.apiserver.kinds.resource.classes import DEVICE_CLASS
from konverge.apiserver.kinds.resource.slices import RESOURCE_SLICE

STRATEGIES = {
    "DeviceClass": DEVICE_CLASS,
    "ResourceClaim": RESOURCE_CLAIM,
    "ResourceClaimTemplate": RESOURCE_CLAIM_TEMPLATE,
    "ResourceSlice": RESOURCE_SLICE,
}
