"""Services of `spec.expose`: they reach the machine by the label that its pod has."""

from __future__ import annotations

from konverge.objects.kinds.core_v1 import Service, ServicePort, ServiceSpec
from konverge.operators.wukong import names
from konverge.operators.wukong.children.metadata import metadata
from konverge.operators.wukong.resource import Wukong
from konverge.operators.wukong.spec_guest import Expose


def services_for(wukong: Wukong) -> list[Service]:
    return [service_for(wukong, exposed) for exposed in wukong.spec.expose]


def service_for(wukong: Wukong, expose: Expose) -> Service:
    port = ServicePort(
        name=expose.name,
        port=expose.port,
        target_port=expose.target_port or expose.port,
        protocol=expose.protocol,
    )
    return Service(
        metadata=metadata(wukong, names.service(wukong.metadata.name, expose.name)),
        spec=ServiceSpec(type=expose.type, selector={names.LABEL: wukong.metadata.name}, ports=[port]),
    )
