"""The Ingress: a way from outside to the console, where one is wished for."""

from __future__ import annotations

from konverge.objects.kinds.networking_v1 import (
    HTTPIngressPath,
    HTTPIngressRuleValue,
    Ingress,
    IngressBackend,
    IngressRule,
    IngressServiceBackend,
    IngressSpec,
    IngressTLS,
    ServiceBackendPort,
)
from konverge.operators.nacos import names
from konverge.operators.nacos.children.metadata import metadata
from konverge.operators.nacos.wish import Wish


def wants_ingress(wish: Wish) -> bool:
    return wish.spec.ingress.enabled


def ingress(wish: Wish) -> Ingress:
    """To the console: at the root of a port of its own since 3.0, before that under /nacos of the main one."""
    options = wish.spec.ingress
    port, path = (names.CONSOLE, "/") if wish.third else (names.CLIENT, "/nacos")
    service = IngressServiceBackend(name=names.front(wish.name, wish.cluster), port=ServiceBackendPort(name=port))
    where = HTTPIngressPath(path=options.path or path, path_type="Prefix", backend=IngressBackend(service=service))
    hosts = [options.host] if options.host else []
    return Ingress(
        metadata=metadata(wish, wish.name, extra=options.annotations),
        spec=IngressSpec(
            ingress_class_name=options.class_name,
            rules=[IngressRule(host=options.host or None, http=HTTPIngressRuleValue(paths=[where]))],
            tls=[IngressTLS(hosts=hosts, secret_name=options.tls_secret_name)] if options.tls_secret_name else [],
        ),
    )
