"""storage.k8s.io: StorageClass, VolumeAttributesClass, CSIDriver, CSINode, CSIStorageCapacity, VolumeAttachment."""

from konverge.apiserver.kinds.storage.attachments import VOLUME_ATTACHMENT
from konverge.apiserver.kinds.storage.classes import CSI_STORAGE_CAPACITY, STORAGE_CLASS, VOLUME_ATTRIBUTES_CLASS
from konverge.apiserver.kinds.storage.drivers import CSI_DRIVER, CSI_NODE

STRATEGIES = {
    "StorageClass": STORAGE_CLASS,
    "VolumeAttributesClass": VOLUME_ATTRIBUTES_CLASS,
    "CSIDriver": CSI_DRIVER,
    "CSINode": CSI_NODE,
    "CSIStorageCapacity": CSI_STORAGE_CAPACITY,
    "VolumeAttachment": VOLUME_ATTACHMENT,
}
