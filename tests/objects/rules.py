"""Kinds with rules in many places, and objects that break them."""

from __future__ import annotations

from typing import Annotated, Any

from konverge.objects import CustomResource, MaxLength, Model, NoStatus, Rule, field, required

GROUP = "rules.example.com"


class Port(Model, rules=[Rule("self.number < 1024 || self.open", message="high ports must be open")]):
    number: int = required(int)
    open: bool = False


class Limits(Model):
    share: Annotated[int, Rule("self % 2 == 0")] = 0


class GateSpec(
    Model,
    rules=[
        Rule("self.least <= self.most", message_expression="string(self.least) + ' is over ' + string(self.most)"),
        Rule("self.color == oldSelf.color", message="the color stays", reason="FieldValueForbidden"),
        Rule("!has(self.__package__) || self.__namespace__ != self.__package__", message="a package of that name"),
        Rule("!has(self.top__dash__color) || self.top__dash__color != 'black'", message="no black top"),
    ],
):
    least: int = 1
    most: int = 3
    color: str = "red"
    ports: list[Port] = []
    limits: dict[str, Limits] = {}
    nested: Limits | None = None
    package: Annotated[str, MaxLength(9)] | None = None
    top_color: str | None = field(default=None, name="top-color")
    namespace: Annotated[str, MaxLength(9), Rule("self != 'bad'", message="not this namespace")] = field(
        default="default"
    )


class Gate(
    CustomResource[GateSpec, NoStatus],
    group=GROUP,
    version="v1",
    rules=[Rule("self.metadata.name != 'wrong'", message="not this name")],
):
    """A gate."""


BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"least": 5}, "5 is over 3"),
    ({"ports": [{"number": 80}, {"number": 8080}]}, "high ports must be open"),
    ({"limits": {"a": {"share": 2}, "b": {"share": 3}}}, "failed rule: self % 2 == 0"),
    ({"nested": {"share": 1}}, "failed rule: self % 2 == 0"),
    ({"namespace": "bad"}, "not this namespace"),
    ({"namespace": "a", "package": "a"}, "a package of that name"),
    ({"top-color": "black"}, "no black top"),
]
FINE: dict[str, Any] = {
    "ports": [{"number": 80}, {"number": 8080, "open": True}],
    "limits": {"a": {"share": 2}},
    "nested": {},
    "namespace": "good",
    "package": "better",
    "top-color": "white",
}
