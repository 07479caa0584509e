"""Many clusters: controllers that run in each of them, from one process with one leader. `Manager(clusters=…)`.

providers.py    where clusters come from: the protocol, and a fixed list
folder.py       kubeconfig files in a folder
secrets.py      Secrets with a label, in the home cluster
confined.py     kubeconfigs that may neither run programs nor read files
fleet.py        the clusters that there are now, each with a task that keeps it
member.py       one cluster: its client, caches, events and engines
engine.py       a controller in one of several clusters
access.py       what a reconcile sees of the others: `ctx.clusters`
"""

from konverge.runtime.clusters.access import ClusterAccess, OtherClusters, UnknownCluster
from konverge.runtime.clusters.folder import KubeconfigFolder
from konverge.runtime.clusters.providers import ClusterProvider, Connection, FixedClusters, Unusable
from konverge.runtime.clusters.secrets import KubeconfigSecrets

__all__ = [
    "ClusterAccess",
    "ClusterProvider",
    "Connection",
    "FixedClusters",
    "KubeconfigFolder",
    "KubeconfigSecrets",
    "OtherClusters",
    "UnknownCluster",
    "Unusable",
]
