"""A user of the API by lightkube: server-side apply, wait, scale, watch, delete."""

from __future__ import annotations

from lightkube import ApiError, Client, codecs
from lightkube.models.autoscaling_v1 import ScaleSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import ConfigMap, Namespace
from steps import DEPLOYMENT, done

NAMESPACE = "light-client"


def main() -> None:
    client = Client(namespace=NAMESPACE, field_manager="light")
    client.create(Namespace(metadata=ObjectMeta(name=NAMESPACE)))
    web = client.apply(codecs.from_dict(DEPLOYMENT), namespace=NAMESPACE)
    assert web.spec.replicas == 1
    done("apply")
    client.replace(Deployment.Scale(metadata=ObjectMeta(name="web", namespace=NAMESPACE), spec=ScaleSpec(replicas=3)))
    assert client.get(Deployment, "web").spec.replicas == 3
    done("scale")
    available = {"type": "Available", "status": "True", "reason": "Reported", "message": ""}
    client.patch(Deployment.Status, "web", {"status": {"conditions": [available]}})
    client.wait(Deployment, "web", for_conditions=["Available"])
    done("wait")
    client.create(ConfigMap(metadata=ObjectMeta(name="m", labels={"app": "m"})))
    for event, config_map in client.watch(ConfigMap, labels={"app": "m"}):
        assert (event, config_map.metadata.name) == ("ADDED", "m")
        break
    done("watch")
    client.delete(Deployment, "web")
    try:
        client.get(Deployment, "web")
    except ApiError as error:
        code = error.status.code
    else:
        code = 200
    assert code == 404
    done("delete")


main()
