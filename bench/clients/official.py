"""The official client, synchronous."""

from __future__ import annotations

import sys

from kubernetes import client, config, watch

from bench._workers import measure_from_here, measure_to_here, serve
from bench.clients import manifest, names


class Peer:
    def __init__(self, kubeconfig: str) -> None:
        config.load_kube_config(kubeconfig)
        core, apps = client.CoreV1Api(), client.AppsV1Api()
        self.creates = {"ConfigMap": core.create_namespaced_config_map, "Deployment": apps.create_namespaced_deployment}
        self.reads = {"ConfigMap": core.read_namespaced_config_map, "Deployment": apps.read_namespaced_deployment}
        self.lists = {"ConfigMap": core.list_namespaced_config_map, "Deployment": apps.list_namespaced_deployment}

    def prepare_create(self, kind: str, namespace: str, count: int) -> None:
        self.objects = [manifest(kind, name, namespace) for name in names(count)]

    def create(self, kind: str, namespace: str, count: int) -> None:
        for wanted in self.objects:
            assert self.creates[kind](namespace, wanted).metadata.uid

    def get(self, kind: str, namespace: str, count: int) -> None:
        for name in names(count):
            assert self.reads[kind](name, namespace).metadata.name == name

    def list(self, kind: str, namespace: str, count: int, times: int) -> None:
        for _ in range(times):
            listed = self.lists[kind](namespace, label_selector="app.kubernetes.io/part-of=bench")
            assert sum(item.metadata.name != "" for item in listed.items) == count

    def watch(self, kind: str, namespace: str, events: int, **since: str) -> None:
        seen = 0
        watching = watch.Watch()
        for event in watching.stream(self.lists[kind], namespace, **since):
            seen += event["object"].metadata.name != ""
            if seen == 1:
                measure_from_here()
            if seen == events:
                measure_to_here()
                watching.stop()


if __name__ == "__main__":
    serve(Peer(sys.argv[1]))
