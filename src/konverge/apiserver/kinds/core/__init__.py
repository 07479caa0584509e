"""The kinds of the core group. ComponentStatus and Binding have no declarations: one is read only, one is a request."""

from __future__ import annotations

from konverge.apiserver.kinds.core.claims import PERSISTENT_VOLUME_CLAIM
from konverge.apiserver.kinds.core.config_data import CONFIG_MAP, SECRET
from konverge.apiserver.kinds.core.endpoints import ENDPOINTS
from konverge.apiserver.kinds.core.events import EVENT
from konverge.apiserver.kinds.core.limit_ranges import LIMIT_RANGE
from konverge.apiserver.kinds.core.namespaces import NAMESPACE
from konverge.apiserver.kinds.core.nodes import NODE
from konverge.apiserver.kinds.core.persistent_volumes import PERSISTENT_VOLUME
from konverge.apiserver.kinds.core.pods import POD
from konverge.apiserver.kinds.core.quotas import RESOURCE_QUOTA
from konverge.apiserver.kinds.core.service_accounts import SERVICE_ACCOUNT
from konverge.apiserver.kinds.core.services import SERVICE
from konverge.apiserver.kinds.core.workloads import POD_TEMPLATE, REPLICATION_CONTROLLER
from konverge.apiserver.strategy import Strategy

STRATEGIES: dict[str, Strategy] = {
    "ConfigMap": CONFIG_MAP,
    "Endpoints": ENDPOINTS,
    "Event": EVENT,
    "LimitRange": LIMIT_RANGE,
    "Namespace": NAMESPACE,
    "Node": NODE,
    "PersistentVolume": PERSISTENT_VOLUME,
    "PersistentVolumeClaim": PERSISTENT_VOLUME_CLAIM,
    "Pod": POD,
    "PodTemplate": POD_TEMPLATE,
    "ReplicationController": REPLICATION_CONTROLLER,
    "ResourceQuota": RESOURCE_QUOTA,
    "Secret": SECRET,
    "Service": SERVICE,
    "ServiceAccount": SERVICE_ACCOUNT,
}
