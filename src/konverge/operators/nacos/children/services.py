"""How others reach the servers: Services, the Ingress of the console, the ServiceMonitor for Prometheus.

Services: `<name>` for a standalone; `<name>-headless` and `<name>-client` for a cluster.
"""

from __future__ import annotations

from konverge.objects import to_dict
from konverge.objects.kinds.core_v1 import Service, ServicePort, ServiceSpec
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
from konverge.operators.nacos.desired import Desired


def services(desired: Desired) -> list[Service]:
    return [headless_service(desired), client_service(desired)] if desired.cluster else [standalone_service(desired)]


def service_names(desired: Desired) -> list[str]:
    name = desired.name
    return [names.headless(name), names.client(name)] if desired.cluster else [name]


def standalone_service(desired: Desired) -> Service:
    """All ports on one address: clients compute the second port from the first."""
    service = _service(desired, desired.name, _server_ports(desired))
    service.spec.publish_not_ready_addresses = True
    return _exposed(service, desired)


def headless_service(desired: Desired) -> Service:
    """For the servers themselves: they must find each other before any of them is ready."""
    service = _service(desired, names.headless(desired.name), _server_ports(desired))
    service.spec.cluster_ip = "None"
    service.spec.publish_not_ready_addresses = True
    return service


def client_service(desired: Desired) -> Service:
    """For clients and users."""
    ports = [names.CLIENT, names.NEW_RPC]
    if desired.third:
        ports.append(names.CONSOLE)
    return _exposed(_service(desired, names.client(desired.name), ports), desired)


def _server_ports(desired: Desired) -> list[str]:
    ports = [names.CLIENT, names.RPC, names.NEW_RPC]
    return [*ports, names.CLUSTER_RPC, names.CONSOLE] if desired.third else ports


def _service(desired: Desired, name: str, ports: list[str]) -> Service:
    return Service(
        metadata=desired.metadata(name),
        spec=ServiceSpec(
            type="ClusterIP",
            selector=names.selector(desired.name),
            ports=[
                ServicePort(name=port, port=names.PORTS[port], target_port=names.PORTS[port], protocol="TCP")
                for port in ports
            ],
        ),
    )


def _exposed(service: Service, desired: Desired) -> Service:
    options = desired.spec.service
    service.spec.type = options.type
    service.spec.load_balancer_class = options.load_balancer_class
    service.metadata.annotations |= options.annotations
    chosen = to_dict(options.node_ports) if options.node_ports is not None else {}
    for port in service.spec.ports:
        port.node_port = chosen.get(port.name or "")
    return service


def wants_ingress(desired: Desired) -> bool:
    return desired.spec.ingress.enabled


def ingress(desired: Desired) -> Ingress:
    """To the console: since 3.0 at the root of its own port, before that under /nacos of the main port."""
    options = desired.spec.ingress
    port, path = (names.CONSOLE, "/") if desired.third else (names.CLIENT, "/nacos")
    service = IngressServiceBackend(name=names.front(desired.name, desired.cluster), port=ServiceBackendPort(name=port))
    http_path = HTTPIngressPath(path=options.path or path, path_type="Prefix", backend=IngressBackend(service=service))
    hosts = [options.host] if options.host else []
    return Ingress(
        metadata=desired.metadata(desired.name, extra=options.annotations),
        spec=IngressSpec(
            ingress_class_name=options.class_name,
            rules=[IngressRule(host=options.host or None, http=HTTPIngressRuleValue(paths=[http_path]))],
            tls=[IngressTLS(hosts=hosts, secret_name=options.tls_secret_name)] if options.tls_secret_name else [],
        ),
    )
