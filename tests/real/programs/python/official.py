"""A user of the API by the official Python client: apply, watch, patch, scale, wait, delete; custom resources."""

from __future__ import annotations

import threading
from typing import Any

from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import ConflictError
from steps import DEPLOYMENT, done

NAMESPACE = "python-client"
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "cogs.python.konverge.dev"},
    "spec": {
        "group": "python.konverge.dev",
        "scope": "Namespaced",
        "names": {"kind": "Cog", "plural": "cogs"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"teeth": {"type": "integer", "minimum": 3}}},
                            "status": {"type": "object", "properties": {"worn": {"type": "boolean"}}},
                        },
                    }
                },
            }
        ],
    },
}


def refused(code: int, call: Any, *arguments: Any, **options: Any) -> ApiException:
    try:
        call(*arguments, **options)
    except ApiException as error:
        if error.status != code:
            raise
        return error
    raise AssertionError(f"{call} was expected to be refused with {code}")


def is_missing(call: Any, *arguments: Any) -> bool:
    try:
        call(*arguments)
    except ApiException as error:
        if error.status != 404:
            raise
        return True
    return False


def workloads(core: client.CoreV1Api, apps: client.AppsV1Api) -> None:
    core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=NAMESPACE)))
    utils.create_from_dict(apps.api_client, DEPLOYMENT, namespace=NAMESPACE)
    web = apps.read_namespaced_deployment("web", NAMESPACE)
    assert web.spec.replicas == 1
    assert web.spec.strategy.rolling_update.max_surge == "25%"
    done("create")
    image = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "nginx:2"}]}}}}
    web = apps.patch_namespaced_deployment("web", NAMESPACE, image)
    assert [container.image for container in web.spec.template.spec.containers] == ["nginx:2"]
    steps = [
        {"op": "test", "path": "/spec/replicas", "value": 1},
        {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}},
    ]
    assert apps.patch_namespaced_deployment("web", NAMESPACE, steps).metadata.labels == {"a": "b"}
    done("patch")
    apps.patch_namespaced_deployment_scale("web", NAMESPACE, {"spec": {"replicas": 5}})
    assert apps.read_namespaced_deployment_scale("web", NAMESPACE).spec.replicas == 5
    done("scale")
    stale = apps.read_namespaced_deployment("web", NAMESPACE)
    apps.patch_namespaced_deployment("web", NAMESPACE, {"metadata": {"labels": {"a": "c"}}})
    assert (
        "the object has been modified" in refused(409, apps.replace_namespaced_deployment, "web", NAMESPACE, stale).body
    )
    done("conflict")


def watching(core: client.CoreV1Api) -> None:
    core.create_namespaced_config_map(NAMESPACE, {"metadata": {"name": "first"}})
    seen: list[tuple[str, str]] = []
    ready = threading.Event()

    def follow() -> None:
        stream = watch.Watch().stream(core.list_namespaced_config_map, NAMESPACE, timeout_seconds=120)
        for event in stream:
            if event["object"].metadata.name == "kube-root-ca.crt":
                continue
            seen.append((event["type"], event["object"].metadata.name))
            ready.set()
            if event["type"] == "DELETED":
                return

    follower = threading.Thread(target=follow)
    follower.start()
    assert ready.wait(120)
    core.create_namespaced_config_map(NAMESPACE, {"metadata": {"name": "second"}})
    core.patch_namespaced_config_map("second", NAMESPACE, {"data": {"a": "1"}})
    core.delete_namespaced_config_map("second", NAMESPACE)
    follower.join()
    assert seen == [("ADDED", "first"), ("ADDED", "second"), ("MODIFIED", "second"), ("DELETED", "second")], seen
    done("watch")


def paging(core: client.CoreV1Api) -> None:
    for number in range(7):
        core.create_namespaced_secret(NAMESPACE, {"metadata": {"name": f"s{number}"}, "stringData": {"n": str(number)}})
    names, more = [], None
    while more != "":
        page = core.list_namespaced_secret(NAMESPACE, limit=3, _continue=more)
        names += [secret.metadata.name for secret in page.items]
        more = page.metadata._continue or ""
    assert names == [f"s{number}" for number in range(7)]
    done("pages")


def custom(api: client.ApiClient) -> None:
    utils.create_from_dict(api, DEFINITION)
    follower = watch.Watch()
    definitions = client.ApiextensionsV1Api(api)
    for event in follower.stream(definitions.list_custom_resource_definition, timeout_seconds=120):
        definition = event["object"]
        conditions = definition.status.conditions or [] if definition.status else []
        if definition.metadata.name == "cogs.python.konverge.dev" and any(
            condition.type == "Established" and condition.status == "True" for condition in conditions
        ):
            follower.stop()
    objects = client.CustomObjectsApi(api)
    where = ("python.konverge.dev", "v1", NAMESPACE, "cogs")
    cog = {"apiVersion": "python.konverge.dev/v1", "kind": "Cog", "metadata": {"name": "c"}, "spec": {"teeth": 12}}
    while is_missing(objects.list_namespaced_custom_object, *where):
        pass  # what answers requests learns of a definition by a watch of its own
    objects.create_namespaced_custom_object(*where, cog)
    bad = {**cog, "metadata": {"name": "d"}, "spec": {"teeth": 1}}
    assert (
        "should be greater than or equal to 3"
        in refused(422, objects.create_namespaced_custom_object, *where, bad).body
    )
    status = {"status": {"worn": True}, "spec": {"teeth": 99}}
    changed = objects.patch_namespaced_custom_object_status(*where, "c", status)
    assert (changed["spec"]["teeth"], changed["status"]) == (12, {"worn": True})
    done("custom")


def applying(api: client.ApiClient) -> None:
    config_maps = dynamic.DynamicClient(api).resources.get(api_version="v1", kind="ConfigMap")
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"a": "1"}}
    config_maps.server_side_apply(body=applied, namespace=NAMESPACE, name="applied", field_manager="one")
    rival = {**applied, "data": {"a": "2"}}
    try:
        config_maps.server_side_apply(body=rival, namespace=NAMESPACE, name="applied", field_manager="two")
    except ConflictError as error:
        message = error.body
    else:
        message = "no conflict"
    assert 'conflict with \\"one\\"' in message, message
    done("apply")


def removing(core: client.CoreV1Api, apps: client.AppsV1Api) -> None:
    apps.delete_namespaced_deployment("web", NAMESPACE, propagation_policy="Background")
    refused(404, apps.read_namespaced_deployment, "web", NAMESPACE)
    core.delete_collection_namespaced_secret(NAMESPACE)
    assert core.list_namespaced_secret(NAMESPACE).items == []
    done("delete")


def main() -> None:
    config.load_kube_config()
    api = client.ApiClient()
    core, apps = client.CoreV1Api(api), client.AppsV1Api(api)
    workloads(core, apps)
    watching(core)
    paging(core)
    custom(api)
    applying(api)
    removing(core, apps)


main()
