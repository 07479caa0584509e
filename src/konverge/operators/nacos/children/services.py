"""Services: `<name>` for a standalone; `<name>-headless` and `<name>-client` for a cluster."""

from __future__ import annotations

from konverge.objects import to_dict
from konverge.objects.kinds.core_v1 import Service, ServicePort, ServiceSpec
from konverge.operators.nacos import names
from konverge.operators.nacos.children.metadata import metadata
from konverge.operators.nacos.wish import Wish


def services(wish: Wish) -> list[Service]:
    return [headless_service(wish), client_service(wish)] if wish.cluster else [standalone_service(wish)]


def standalone_service(wish: Wish) -> Service:
    """All ports on one address: clients compute the second port from the first."""
    service = _service(wish, wish.name, [*_SERVER_PORTS, *_THIRD_PORTS] if wish.third else _SERVER_PORTS)
    service.spec.publish_not_ready_addresses = True
    return _exposed(service, wish)


def headless_service(wish: Wish) -> Service:
    """The servers' own: they must find one another before any of them is ready."""
    service = _service(
        wish, names.headless(wish.name), [*_SERVER_PORTS, *_THIRD_PORTS] if wish.third else _SERVER_PORTS
    )
    service.spec.cluster_ip = "None"
    service.spec.publish_not_ready_addresses = True
    return service


def client_service(wish: Wish) -> Service:
    """Where programs and people go."""
    ports = [names.CLIENT, names.NEW_RPC]
    if wish.third:
        ports.append(names.CONSOLE)
    return _exposed(_service(wish, names.client(wish.name), ports), wish)


_SERVER_PORTS = [names.CLIENT, names.RPC, names.NEW_RPC]
_THIRD_PORTS = [names.CLUSTER_RPC, names.CONSOLE]


def _service(wish: Wish, name: str, ports: list[str]) -> Service:
    return Service(
        metadata=metadata(wish, name),
        spec=ServiceSpec(
            type="ClusterIP",
            selector=names.selector(wish.name),
            ports=[
                ServicePort(name=one, port=names.PORTS[one], target_port=names.PORTS[one], protocol="TCP")
                for one in ports
            ],
        ),
    )


def _exposed(service: Service, wish: Wish) -> Service:
    options = wish.spec.service
    service.spec.type = options.type
    service.spec.load_balancer_class = options.load_balancer_class
    service.metadata.annotations |= options.annotations
    chosen = to_dict(options.node_ports) if options.node_ports is not None else {}
    for port in service.spec.ports:
        port.node_port = chosen.get(port.name or "")
    return service
