"""Names, labels and ports. They never change: users' dashboards, scripts and clients depend on them."""

from __future__ import annotations

MANAGED_BY = "nacos-operator"
CONFIG_DIGEST = "nacos.io/config-digest"
"""The annotation of a pod template that changes with the configuration: its change restarts the pods."""
SECRETS_DIGEST = "nacos.io/secrets-digest"
"""The same for the values that the pods' environment takes from Secrets."""
POD_SECURITY = "nacos.io/pod-security"
"""The standard that the pods of a template were made for; without it, for none."""
LISTED = "nacos.io/listed-servers"
"""The annotation of a StatefulSet whose servers read their list of members from a file: how many are in it."""
LISTED_SINCE = "nacos.io/listed-since"
"""Since when."""
HIBERNATED_REPLICAS = "nacos.io/hibernated-replicas"
"""The annotation of a StatefulSet that hibernates: with how many servers it wakes."""
RESTORE = "nacos.io/restore"
"""The annotation of a Nacos whose database is being restored, with name and uid of the NacosRestore: no server runs."""
DATA_OF = "nacos.io/data-of"
"""The annotation of a claim: the type of the servers whose embedded data is in its volume."""
DATA_VOLUME = "db"

CLIENT, RPC, NEW_RPC, CLUSTER_RPC, CONSOLE = "client", "rpc", "new-rpc", "cluster-rpc", "console"
PORTS = {CLIENT: 8848, RPC: 7848, NEW_RPC: 9848, CLUSTER_RPC: 9849, CONSOLE: 8080}


def selector(name: str) -> dict[str, str]:
    """A StatefulSet's selector cannot change, so the resource's own labels are not part of it."""
    return {"app": name, "middleware": "nacos", "component": "nacos"}


def headless(name: str) -> str:
    return f"{name}-headless"


def client(name: str) -> str:
    return f"{name}-client"


def front(name: str, cluster: bool) -> str:
    """The Service that programs and people use."""
    return client(name) if cluster else name


def auth_secret(name: str) -> str:
    return f"{name}-auth"


def final_config(name: str) -> str:
    return f"{name}-final-config"


def mysql_init(name: str) -> str:
    return f"{name}-mysql-sql-init"


def mysql_ca(name: str) -> str:
    return f"{name}-mysql-ca"


def dashboard(name: str) -> str:
    return f"{name}-dashboard"


def pod(name: str, ordinal: int) -> str:
    return f"{name}-{ordinal}"


def claim(name: str, ordinal: int) -> str:
    return f"{DATA_VOLUME}-{pod(name, ordinal)}"


def member(name: str, ordinal: int, namespace: str, domain: str) -> str:
    """The address of a server for its peers: a name that outlives the pod's IP."""
    return f"{pod(name, ordinal)}.{headless(name)}.{namespace}.svc.{domain}:{PORTS[CLIENT]}"
