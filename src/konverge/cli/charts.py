"""A Helm chart of an operator: hand-written templates, with definitions and roles read off the operator's code.

The templates lie in the folder `chartfiles` of this package, those of one operator alone in `only/NAME` of it, with
values of their own. What differs from operator to operator is filled in, so that the chart of a version grants what the
code of that version needs. `konverge manifests` says the same without Helm; a test compares the two.
"""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Any

import yaml

from konverge.cli import management, monitoring
from konverge.cli.documents import read_folder
from konverge.cli.installation import (
    GRACE,
    METRICS,
    PROBES,
    USER,
    home_controllers,
    in_namespaces,
    provider_permissions,
    replicas_of,
    sharding_of,
)
from konverge.cli.webhook_objects import CERTIFICATES, WebhookObjects
from konverge.go_yaml import dump
from konverge.operators.catalog import Operator
from konverge.runtime.rbac import permissions, rules_for
from konverge.runtime.webhooks.registry import PORT

_ANY = "any"
"""Stands for whatever namespace the roles will be granted in."""
_LEASE = "lease"
_ONLY = "only"
_WEBHOOKS = "webhooks"
_OURS = "konverge"
_ONE_WORKS = "one works, the others stand by for its Lease"
_ALL_WORK = "all work, each on its share of the keys"


def chart(operator: Operator, version: str) -> dict[str, str]:
    """The files of the chart, by their paths in its folder."""
    facts = {
        "REPLICAS": replicas_of([operator]),
        "REPLICAS_DO": _ONE_WORKS if sharding_of([operator]) is None else _ALL_WORK,
        "GRACE": GRACE,
        "USER": USER,
        "METRICS": METRICS,
        "PROBES": PROBES,
        "PROGRAM": operator.start[0],
        "REFERENCE": "".join(f"\n            - {json.dumps(part)}" for part in operator.reference),
        "PRODUCT": operator.product,
        "IMAGE": image_of(operator)[0],
        "MANAGEMENT": management.PORT,
        "MANAGEMENT_GRACE": management.GRACE,
        "AUTHORITY": management.AUTHORITY,
        "CERTIFICATE": management.CERTIFICATE,
        "WEBHOOKS": PORT,
        "WEBHOOK_CERTIFICATES": CERTIFICATES,
    }
    files = {path: _filled(text, facts) for path, text in _files_of(operator).items()}
    files["Chart.yaml"] = dump(_about(operator, version, image_of(operator)[1] or semantic(version)))
    files["values.schema.json"] = json.dumps(_schema(yaml.safe_load(files["values.yaml"])), indent=1)
    files |= _definitions(operator) | _webhooks(operator)
    files |= {f"policies/{policy['kind']}.yaml": dump(policy["spec"]) for policy in operator.policies("")}
    if "management" in yaml.safe_load(files["values.yaml"]):
        files["rules/callers.yaml"] = dump(management.caller_rules())
    files["monitoring/dashboard.json"] = monitoring.dashboard_text("JOB", "NAMESPACE")
    files["monitoring/rules.yaml"] = dump(monitoring.rules("JOB", "NAMESPACE"))
    files["rules/readers.yaml"] = dump(monitoring.READER_RULES)
    files["rules/reviews.yaml"] = dump(rules_for(permissions([], reviews=True)))
    return files | _rules(operator)


def _files_of(operator: Operator) -> dict[str, str]:
    """Those of every chart, and those of this operator alone; its values follow the others."""
    folder = files("konverge.cli") / "chartfiles"
    texts = {path: text for path, text in read_folder(folder) if not path.startswith((f"{_ONLY}/", f"{_WEBHOOKS}/"))}
    more = dict(read_folder(folder / _WEBHOOKS)) if operator.webhooks() else {}
    own_folder = folder / _ONLY / operator.name
    ours = operator.product == _OURS  # and not another one of the same name
    own = dict(read_folder(own_folder)) if ours and own_folder.is_dir() else {}
    values = "".join(part.get("values.yaml", "") for part in (texts, own, more))
    return texts | own | more | {"values.yaml": values}


def files_of_some(operator: Operator) -> list[str]:
    """Those that a chart of this name has by its operator: a template for webhooks, and what one operator has alone."""
    folder = files("konverge.cli") / "chartfiles"
    places = (folder / _WEBHOOKS, folder / _ONLY / operator.name)
    return [path for place in places if place.is_dir() for path, _ in read_folder(place)]


def _definitions(operator: Operator) -> dict[str, str]:
    """Helm takes definitions as they are, so one that names the Service of its conversion is a template's affair."""
    plan = _plan(operator)
    converted = {webhook.definition for webhook in plan.webhooks}
    return {
        f"{'definitions' if name in converted else 'crds'}/{name}.yaml": dump(plan.in_definition(definition))
        for definition in operator.definitions()
        for name in [definition["metadata"]["name"]]
    }


def _webhooks(operator: Operator) -> dict[str, str]:
    """The entries of the configurations; the templates put in the name of the Service."""
    objs = _plan(operator).everything({})
    return {f"webhooks/{obj['kind']}.yaml": dump(obj["webhooks"]) for obj in objs if "webhooks" in obj}


def _plan(operator: Operator) -> WebhookObjects:
    return WebhookObjects(webhooks=operator.webhooks(), name=operator.identity, namespace="default")


def image_of(operator: Operator) -> tuple[str, str]:
    """The repository and the tag of its image; an empty tag means the version of the chart.

    >>> image_of(Operator(name="a", kinds=[], controllers=list, image="localhost:5000/a"))
    ('localhost:5000/a', '')
    """
    repository, _, tag = operator.image.rpartition(":")
    if not repository or "/" in tag:
        return operator.image or _OURS, ""
    return repository, tag


def semantic(version: str) -> str:
    """A version as Helm takes it: three numbers, and what follows them after a dash.

    >>> semantic("1.2"), semantic("0.1.0.dev3+g1"), semantic("")
    ('1.2.0', '0.1.0-dev3-g1', '0.1.0')
    """
    numbers = re.match(r"\d+(\.\d+)*", version)
    parts = [*(numbers[0].split(".") if numbers else ["0", "1", "0"]), "0", "0"]
    rest = re.sub(r"[^0-9A-Za-z]+", "-", version[numbers.end() :] if numbers else "").strip("-")
    return ".".join(parts[:3]) + (f"-{rest}" if rest else "")


def _about(operator: Operator, version: str, app_version: str) -> dict[str, Any]:
    return {
        "apiVersion": "v2",
        "name": operator.identity,
        "description": operator.summary,
        "type": "application",
        "version": semantic(version),
        "appVersion": app_version,
        "kubeVersion": ">=1.29.0-0",
        "keywords": ["operator", operator.name],
    }


def _rules(operator: Operator) -> dict[str, str]:
    """What is needed for the whole cluster, in each namespace looked at, where the Lease is, and in namespaces that
    the code itself names (`Use(Secret, "get", namespaces=("vault",))`)."""
    reviews = operator.manager is not None and operator.manager.declares_debug
    sharded = sharding_of([operator]) is not None
    needed = permissions(
        in_namespaces(home_controllers([operator]), (_ANY,)), lease_namespace=_LEASE, reviews=reviews, sharded=sharded
    )
    needed += provider_permissions([operator])
    places = {"cluster": "", "namespaced": _ANY, "lease": _LEASE}
    named = sorted({permission.namespace for permission in needed} - set(places.values()))

    def rules(place: str) -> list[dict[str, Any]]:
        return rules_for(permission for permission in needed if permission.namespace == place)

    made = {f"rules/{name}.yaml": dump(rules(place)) for name, place in places.items()}
    return made | {"rules/declared.yaml": dump({namespace: rules(namespace) for namespace in named})}


def _schema(values: Any) -> dict[str, Any]:
    """What `helm install --set` is checked against: the types of the values there are."""
    if isinstance(values, dict) and values:
        properties = {name: _schema(value) for name, value in values.items()}
        return {"type": "object", "additionalProperties": False, "properties": properties | _always(values)}
    kinds = {bool: "boolean", int: "integer", str: "string", list: "array", dict: "object"}
    return {"type": kinds[type(values)]}


def _always(values: dict[str, Any]) -> dict[str, Any]:
    """At the top Helm puts in `global`; quantities of resources may be numbers."""
    top = {"global": {"type": "object"}} if "serviceAccount" in values else {}
    return {**top, "resources": {"type": "object"}} if "resources" in values else top


def _filled(text: str, facts: dict[str, Any]) -> str:
    for name, value in facts.items():
        text = text.replace(f"@{name}@", str(value))
    return text
