"""resource.k8s.io: DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice, DeviceTaintRule."""

from konverge.apiserver.kinds.resource.claims import RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE
from konverge.apiserver.kinds.resource.classes import DEVICE_CLASS
from konverge.apiserver.kinds.resource.slices import RESOURCE_SLICE
from konverge.apiserver.kinds.resource.taints import DEVICE_TAINT_RULE

STRATEGIES = {
    "DeviceClass": DEVICE_CLASS,
    "ResourceClaim": RESOURCE_CLAIM,
    "ResourceClaimTemplate": RESOURCE_CLAIM_TEMPLATE,
    "ResourceSlice": RESOURCE_SLICE,
    "DeviceTaintRule": DEVICE_TAINT_RULE,
}
