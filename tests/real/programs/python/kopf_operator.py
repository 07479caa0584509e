"""A kopf operator: a ConfigMap for each Greeting, a note in the status, a farewell at the end."""

from __future__ import annotations

from typing import Any

import kopf
import kubernetes

GROUP = "kopf.konverge.dev"


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    kubernetes.config.load_kube_config()
    settings.posting.enabled = True


@kopf.on.create(GROUP, "greetings")
def say(spec: Any, name: str, namespace: str, patch: Any, body: Any, **_: Any) -> dict[str, str]:
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": spec["text"]}}
    kopf.adopt(config_map, owner=body)
    kubernetes.client.CoreV1Api().create_namespaced_config_map(namespace, config_map)
    kopf.info(body, reason="Said", message=spec["text"])
    return {"text": spec["text"]}


@kopf.on.field(GROUP, "greetings", field="spec.text")
def say_again(new: str, old: str | None, name: str, namespace: str, patch: Any, **_: Any) -> None:
    if old is not None:
        kubernetes.client.CoreV1Api().patch_namespaced_config_map(name, namespace, {"data": {"text": new}})
    patch.status["said"] = new


@kopf.on.delete(GROUP, "greetings")
def leave(name: str, namespace: str, **_: Any) -> None:
    note = {"metadata": {"name": f"{name}-farewell"}}
    kubernetes.client.CoreV1Api().create_namespaced_config_map(namespace, note)
