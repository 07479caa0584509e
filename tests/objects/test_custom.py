"""Custom resources: what the classes are, what they refuse, what their definitions say."""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec
import pytest

from konverge.objects import (
    Column,
    CustomResource,
    Default,
    ExclusiveMaximum,
    ListType,
    Maximum,
    MaxItems,
    MaxLength,
    Minimum,
    Model,
    MultipleOf,
    NoStatus,
    ObjectMeta,
    Pattern,
    Quantity,
    Rule,
    SchemaError,
    crd,
    crd_dict,
    field,
    from_dict,
    from_json,
    to_dict,
    to_json,
    validate,
)
from konverge.objects.custom.resource import guess_plural
from konverge.objects.custom.schema import schema_of

from .zoo import Animal, AnimalSpec, Cage, Keeper, OldKeeper, WebApp, WebAppSpec, WebAppStatus


def _version(definition: dict[str, Any], index: int = 0) -> dict[str, Any]:
    version: dict[str, Any] = definition["spec"]["versions"][index]
    return version


def _schema(definition: dict[str, Any], *path: str) -> dict[str, Any]:
    schema: dict[str, Any] = _version(definition)["schema"]["openAPIV3Schema"]
    for name in path:
        schema = schema["properties"][name]
    return schema


def test_an_object() -> None:
    app = WebApp(metadata=ObjectMeta(name="web"), spec=WebAppSpec(image="nginx"))
    assert app.resource.path("shop", "web") == "/apis/apps.example.com/v1/namespaces/shop/webapps/web"
    assert app.status == WebAppStatus()
    assert to_dict(app) == {
        "apiVersion": "apps.example.com/v1",
        "kind": "WebApp",
        "metadata": {"name": "web"},
        "spec": {"image": "nginx"},
    }
    app.status.phase = "Ready"
    assert to_dict(app)["status"] == {"phase": "Ready"}
    assert from_json(WebApp, to_json(app)) == app


def test_a_spec_of_defaults_need_not_be_given() -> None:
    assert from_json(Cage, "{}").spec.sidecars == []
    with pytest.raises(msgspec.ValidationError, match="missing required field `spec`"):
        from_json(WebApp, "{}")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "missing required field `image`"),
        ({"image": ""}, r"length >= 1 - at `\$.spec.image`"),
        ({"image": "a", "replicas": -1}, r"`int` >= 0 - at `\$.spec.replicas`"),
        ({"image": "a", "port": 65536}, r"`int` <= 65535"),
        ({"image": "a", "env": {"A": 1}}, "Expected `str`, got `int`"),
    ],
)
def test_decoding_refuses(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=message):
        from_dict(WebApp, {"spec": spec})


def test_validating_what_was_made_in_python() -> None:
    app = WebApp(spec=WebAppSpec(image="nginx", replicas=-1))
    with pytest.raises(msgspec.ValidationError, match=r"spec.replicas"):
        validate(app)
    app.spec.replicas = 3
    assert validate(app) == app


def test_the_definition() -> None:
    definition = crd_dict(WebApp)
    assert definition["metadata"] == {"name": "webapps.apps.example.com"}
    assert definition["spec"]["scope"] == "Namespaced"
    assert definition["spec"]["names"] == {
        "kind": "WebApp",
        "listKind": "WebAppList",
        "plural": "webapps",
        "singular": "webapp",
        "shortNames": ["wa"],
        "categories": ["all"],
    }
    version = _version(definition)
    assert (version["name"], version["served"], version["storage"]) == ("v1", True, True)
    assert version["subresources"] == {
        "status": {},
        "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.readyReplicas"},
    }
    assert version["additionalPrinterColumns"] == [
        {"name": "Ready", "type": "integer", "jsonPath": ".status.readyReplicas"},
        {"name": "Image", "type": "string", "jsonPath": ".spec.image", "description": "What runs", "priority": 1},
        {"name": "Available", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Available")].status'},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    assert _schema(definition)["required"] == ["spec"]
    assert _schema(definition, "spec") == {
        "type": "object",
        "properties": {
            "image": {"type": "string", "minLength": 1},
            "replicas": {"type": "integer", "format": "int64", "minimum": 0, "default": 1},
            "port": {"type": "integer", "format": "int64", "minimum": 1, "maximum": 65535, "default": 80},
            "env": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        "required": ["image"],
    }


@pytest.mark.parametrize("classes", [(WebApp,), (Animal,), (Cage,), (Keeper, OldKeeper)], ids=lambda c: c[0].__name__)
def test_typed_and_plain_definitions_say_the_same(classes: tuple[type[CustomResource[Any, Any]], ...]) -> None:
    assert to_dict(crd(*classes)) == crd_dict(*classes)


def test_every_kind_of_field() -> None:
    spec = _schema(crd_dict(Animal), "spec")
    fields = spec["properties"]
    assert spec["description"] == "Every kind of field."
    assert spec["required"] == ["name"]
    assert spec["x-kubernetes-validations"] == [
        {"rule": "self.count <= 100", "message": "too many", "reason": "FieldValueForbidden", "fieldPath": ".count"}
    ]
    assert fields["ratio"] == {
        "type": "number",
        "minimum": 0,
        "exclusiveMinimum": True,
        "maximum": 1,
        "exclusiveMaximum": True,
        "default": 0.5,
    }
    assert fields["nickname"] == {"type": "string", "default": ""}
    assert "default" not in fields["tag"]
    assert fields["color"] == {"type": "string", "enum": ["red", "blue"], "default": "red"}
    assert fields["level"] == {"type": "integer", "format": "int64", "enum": [1, 2]}
    assert fields["budget"]["x-kubernetes-int-or-string"] is True
    assert fields["names"] == {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3}
    assert fields["ports"]["x-kubernetes-list-map-keys"] == ["name"]
    assert fields["labels"]["maxProperties"] == 2
    assert fields["storage"]["default"] == {"size": 1, "limit": 10}
    assert "default" not in fields["backup"]
    assert fields["anything"] == {"x-kubernetes-preserve-unknown-fields": True}
    assert fields["embedded"]["x-kubernetes-embedded-resource"] is True
    assert fields["maybe"] == {"type": "string", "nullable": True}
    assert fields["born"] == fields["seen"] == {"type": "string", "format": "date-time", "minItems": 1, "maxItems": 0}
    assert fields["filled"]["default"] == 7
    assert fields["described"]["description"] == "Text for explain."
    assert fields["clusterIP"] == {"type": "string", "maxLength": 20}


class _Ruled(Model, rules=[Rule("self.a < 9")]):
    a: int = 1


class _Two(Model, rules=[Rule("self.a + self.b > 0")]):
    a: int = 1
    b: int = 2


class _Corners(Model):
    ruled: Annotated[_Ruled, Rule("self.a != 5")] = field(default_factory=_Ruled)
    both: Annotated[Annotated[str, Rule("self != 'x'")] | None, Rule("self != 'y'"), Rule("self != 'z'")] = None
    budget: Annotated[int, Minimum(0)] | Annotated[str, Pattern("^[0-9]+%$")] | None = None
    gaps: list[int | None] = []
    holes: dict[str, Annotated[int, Minimum(1)] | None] = {}
    port: Annotated[int, Minimum(1)] = 0
    data: bytes = b""
    low: Annotated[float, Minimum(0.5), ExclusiveMaximum(1.5)] = 1
    many: list[_Two] = field(default_factory=lambda: [_Two(a=3)])
    named: dict[str, _Two] = field(default_factory=lambda: {"x": _Two(a=3)})
    given: Annotated[_Two | None, Default({"a": 3})] = None
    literal: Literal["a", None] = None
    unset: int | msgspec.UnsetType = msgspec.UNSET


class _Stricter(_Ruled, rules=[Rule("self.b > 1")]):
    b: int = 2


class _Wider(_Stricter):
    c: int = 3


_T = TypeVar("_T")


class _Box(Model, Generic[_T]):
    held: Annotated[list[_T], MaxItems(3)] = []
    one: _T | None = None


class _Boxes(Model):
    numbers: _Box[int] = field(default_factory=_Box)
    words: _Box[Annotated[str, MaxLength(3)]] | None = None


def test_rules_are_inherited_and_models_may_be_generic() -> None:
    for model in (_Stricter, _Wider):
        rules = schema_of(model)["x-kubernetes-validations"]
        assert [rule["rule"] for rule in rules] == ["self.a < 9", "self.b > 1"]
    boxes = schema_of(_Boxes)["properties"]
    assert boxes["numbers"]["properties"]["one"] == {"type": "integer", "format": "int64"}
    assert boxes["words"]["properties"]["held"]["items"] == {"type": "string", "maxLength": 3}


def test_corners() -> None:
    fields = schema_of(_Corners)["properties"]
    assert [rule["rule"] for rule in fields["ruled"]["x-kubernetes-validations"]] == ["self.a < 9", "self.a != 5"]
    assert [rule["rule"][-3:] for rule in fields["both"]["x-kubernetes-validations"]] == ["'x'", "'y'", "'z'"]
    assert (fields["budget"]["minimum"], fields["budget"]["pattern"]) == (0, "^[0-9]+%$")
    assert fields["gaps"]["items"] == {"type": "integer", "format": "int64", "nullable": True}
    assert fields["holes"]["additionalProperties"]["nullable"] is True
    assert "default" not in fields["port"]  # zero, which the class would not decode, means "not given"
    assert "default" not in fields["data"]  # the server refuses an empty text as base64
    assert fields["low"] == {
        "type": "number",
        "minimum": 0.5,
        "maximum": 1.5,
        "x-kubernetes-validations": [{"rule": "self >= 0.5"}, {"rule": "self < 1.5"}],
        "default": 1,
    }
    # The server runs rules on defaults before it would fill in what they leave out.
    assert fields["many"]["default"] == [{"a": 3, "b": 2}]
    assert fields["named"]["default"] == {"x": {"a": 3, "b": 2}}
    assert fields["given"]["default"] == {"a": 3, "b": 2}
    assert fields["literal"] == {"type": "string", "enum": ["a"]}
    assert fields["unset"] == {"type": "integer", "format": "int64"}


class _Words(Model):
    word: Annotated[str, Pattern(r"^\W\d$")] | None = None


def test_classes_of_characters_are_those_of_the_server() -> None:
    assert schema_of(_Words)["properties"]["word"]["pattern"] == r"^\W\d$"
    assert from_json(_Words, '{"word":"\u00e91"}').word == "\u00e91"  # no letter to RE2
    with pytest.raises(msgspec.ValidationError):
        from_json(_Words, '{"word":"-\u0663"}')  # no digit to RE2


@pytest.mark.parametrize("pattern", [r"^\p{L}+$", "(?<x>a)", r"a\Q+\E", "("])
def test_patterns_that_python_cannot_read_are_refused(pattern: str) -> None:
    with pytest.raises(TypeError, match="cannot be read by Python"):
        Pattern(pattern)


@pytest.mark.parametrize(
    "pattern",
    ["[[:alpha:]]", "(?#x)a", r"\u0041", "(?=a)b", "a(?!b)", "(?<=a)b", r"(a)\1", r"a\Z", r"\\(?=a)", "(?P<x>a)(?P=x)"],
)
def test_patterns_that_servers_cannot_read_are_refused(pattern: str) -> None:
    with pytest.raises(TypeError, match="is not common to RE2"):
        Pattern(pattern)


@pytest.mark.parametrize("pattern", ["^[*+]+$", r"\(?=", "(?P<x>a)", "(?:a|b)", "(?i)a", r"\\1", r"[\d]{1,3}"])
def test_patterns_that_servers_read_as_python_does(pattern: str) -> None:
    (shown,) = schema_of(msgspec.defstruct("Shown", [("it", Annotated[str, Pattern(pattern)])]))["properties"].values()  # type: ignore[arg-type]
    assert shown["pattern"] == pattern


def test_several_versions() -> None:
    definition = crd_dict(OldKeeper, Keeper)
    versions = [(v["name"], v["storage"], v.get("deprecationWarning")) for v in definition["spec"]["versions"]]
    assert versions == [("v1", False, "zoo.example.com/v1 Keeper is old; use v2"), ("v2", True, None)]
    assert [v["name"] for v in crd_dict(Animal)["spec"]["versions"]] == ["v1", "v1beta1"]
    assert [v["storage"] for v in crd_dict(Animal)["spec"]["versions"]] == [True, False]
    conversion = {"strategy": "None"}
    assert crd_dict(Keeper, conversion=conversion)["spec"]["conversion"] == conversion


def test_without_a_status() -> None:
    definition = crd_dict(Cage)
    assert "subresources" not in _version(definition)
    assert "status" not in _schema(definition)["properties"]


def test_parts_of_built_in_kinds() -> None:
    template = _schema(crd_dict(Cage), "spec", "template")
    assert template["properties"]["metadata"] == {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    container = template["properties"]["spec"]["properties"]["containers"]["items"]
    assert container["required"] == ["name"]
    assert "description" not in container


def test_rules_on_fields_and_quantities() -> None:
    spec = from_dict(AnimalSpec, {"name": "a", "amount": "1.5Gi"})
    assert spec.amount == Quantity("1536Mi")
    fixed = _schema(crd_dict(Animal), "spec", "fixed")
    assert fixed["x-kubernetes-validations"] == [{"rule": "self == oldSelf", "message": "fixed for ever"}]


@pytest.mark.parametrize(("kind", "plural"), [("Policy", "policies"), ("Bus", "buses"), ("WebApp", "webapps")])
def test_plurals(kind: str, plural: str) -> None:
    assert guess_plural(kind) == plural


class _Needy(Model):
    must: str


class _Recursive(Model):
    child: _Recursive | None = None


class _Mixed(Model):
    value: int | list[str]


class _BadKeys(Model):
    value: dict[int, str]


class _Tagged(Model, tag="a"):
    value: int = 0


class _MixedEnum(Model):
    value: int | float


class _BoundKeys(Model):
    value: dict[Annotated[str, MaxLength(3)], str] = {}


class _OptionalRaw(Model):
    value: msgspec.Raw | None = None


class _Fractions(Model):
    value: Annotated[float, MultipleOf(0.5)] = 1


class _BadDefault(Model):
    value: Annotated[int, Maximum(10)] = 11


class _BadListKey(Model):
    value: Annotated[list[_Tagless], ListType("map", "name")] = []


class _Tagless(Model):
    name: str | None = None


class _DashedRule(Model, rules=[Rule("self.size > 0 && self.my-field > 0")]):
    size: int = 0
    my_field: int = field(default=0, name="my-field")


class _Underscores(Model):
    a: str = field(default="", name="a__b")


class _DashedRuleBelow(Model):
    values: Annotated[list[_Underscores], Rule("self.all(x, x.a__b != 'x')", message="not x")] = []


class _NamelessRule(Model, rules=[Rule("self.size > 0", message_expression="self.1st")]):
    size: int = 0
    first: str = field(default="", name="1st")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (_Recursive, "_Recursive.child: _Recursive contains itself"),
        (_Mixed, "_Mixed.value: of unions only"),
        (_BadKeys, "the keys of a map are texts"),
        (_Tagged, "tagged struct"),
        (_MixedEnum, "of unions only"),
        (_BoundKeys, r"_BoundKeys.value: a structural schema cannot bound the keys .* Rule\("),
        (_OptionalRaw, "_OptionalRaw.value: of unions only"),
        (_Fractions, "cannot check multiples of 0.5"),
        (_BadDefault, "_BadDefault.value: the class itself refuses the default 11: Expected `int` <= 10"),
        (_BadListKey, "_BadListKey.value: 'name' can be a key only as a required field"),
        (_DashedRule, "_DashedRule: the field 'my-field' is not a name of CEL: write my__dash__field"),
        (_DashedRuleBelow, "_DashedRuleBelow.values: the field 'a__b' is not a name of CEL: write a__underscores__b"),
        (_NamelessRule, "_NamelessRule: the field '1st' is not a name of CEL: no rule can name it"),
    ],
)
def test_what_no_schema_can_say(model: type[Model], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        schema_of(model)


def test_mistakes_in_classes_are_told_at_once() -> None:
    with pytest.raises(TypeError, match="must be a domain of yours"):

        class NoGroup(CustomResource[WebAppSpec, NoStatus], group="apps", version="v1"): ...

    with pytest.raises(TypeError, match='give version="v1"'):

        class NoVersion(CustomResource[WebAppSpec, NoStatus], group="a.example.com"): ...

    with pytest.raises(TypeError, match=r"_Needy.must has no default"):

        class NeedyStatus(CustomResource[WebAppSpec, _Needy], group="a.example.com", version="v1"): ...

    with pytest.raises(TypeError, match="write class NoTypes"):

        class NoTypes(CustomResource, group="a.example.com", version="v1"): ...  # type: ignore[type-arg]

    with pytest.raises(TypeError, match="is another resource"):
        crd(WebApp, Animal)
    with pytest.raises(TypeError, match="each version once"):
        crd(WebApp, WebApp)
    with pytest.raises(TypeError, match="at least one"):
        crd()
    with pytest.raises(TypeError, match="names of its keys"):
        ListType("map")
    with pytest.raises(TypeError, match=r"'namespace' is a reserved word of CEL: write \.__namespace__ for a field"):
        Rule("self.ref.namespace == oldSelf.ref.namespace")
    with pytest.raises(TypeError, match="'package' is a reserved word"):
        Rule("self.size > 0", message_expression="'in ' + self.?package.orValue('')")


def test_a_column_that_shows_nothing_is_a_mistake() -> None:
    class Shown(
        CustomResource[WebAppSpec, NoStatus],
        group="a.example.com",
        version="v1",
        columns=[Column("Size", ".spec.size")],
        rules=[Rule("true")],
    ): ...

    with pytest.raises(SchemaError, match="no 'size' in it"):
        crd(Shown)


def test_a_status_that_nothing_wrote_has_seen_no_generation() -> None:
    """kstatus compares `status.observedGeneration` with `metadata.generation`, which begins at 1."""

    class SeenStatus(Model):
        observed_generation: int = 0

    class Seen(CustomResource[Model, SeenStatus], group="seen.dev", version="v1"):
        """One whose controller notes what it has seen."""

    assert _schema(crd_dict(Seen))["properties"]["status"]["default"] == {"observedGeneration": 0}
    assert "default" not in _schema(crd_dict(WebApp))["properties"]["status"], "it has no observedGeneration"


def test_a_schema_may_be_changed_by_its_caller() -> None:
    before = schema_of(_Two)
    schema_of(_Two)["properties"].clear()
    assert schema_of(_Two) == before


def test_metadata_has_a_schema_of_its_own() -> None:
    assert schema_of(ObjectMeta) == {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
