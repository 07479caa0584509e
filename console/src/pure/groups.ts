// The groups of kinds in the menu. What is not named here stands under its API group.

import type { Kind } from "../api/kinds";

const PLACES: [string, string[]][] = [
  ["workloads", ["Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob"]],
  ["network", ["Service", "EndpointSlice", "Ingress", "NetworkPolicy", "IngressClass"]],
  ["storage", ["PersistentVolumeClaim", "PersistentVolume", "StorageClass", "VolumeSnapshot"]],
  ["config", ["ConfigMap", "Secret", "ResourceQuota", "LimitRange", "HorizontalPodAutoscaler", "PodDisruptionBudget"]],
  ["cluster", ["Node", "Namespace", "Event", "Lease", "CustomResourceDefinition", "PriorityClass"]],
  ["access", ["ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"]],
];

export interface KindGroup { id: string; custom: boolean; kinds: Kind[] }

const isBuiltIn = (kind: Kind) => !kind.group.includes(".") || kind.group.endsWith(".k8s.io");

/** The common groups, then those of operators, then what is left. Kinds that two groups serve (events) are shown once. */
export function groupKinds(kinds: Kind[]): KindGroup[] {
  const custom = new Map<string, Kind[]>();
  const places = new Map<string, Kind[]>(PLACES.map(([id]) => [id, []]));
  const other: Kind[] = [];
  const seen = new Set<string>();
  for (const kind of kinds) {
    if (!isBuiltIn(kind)) {
      custom.set(kind.group, [...(custom.get(kind.group) ?? []), kind]);
      continue;
    }
    if (seen.has(kind.kind)) continue;
    seen.add(kind.kind);
    const place = PLACES.find(([, names]) => names.includes(kind.kind));
    (place ? places.get(place[0])! : other).push(kind);
  }
  const groups: KindGroup[] = [];
  for (const [id, names] of PLACES) {
    const entries = places.get(id)!.sort((a, b) => names.indexOf(a.kind) - names.indexOf(b.kind));
    groups.push({ id, custom: false, kinds: entries });
  }
  groups.push(...[...custom].map(([id, entries]) => ({ id, custom: true, kinds: entries })));
  groups.push({ id: "other", custom: false, kinds: other });
  return groups.filter((group) => group.kinds.length);
}
