"""Create, delete, modify and query, against a real API server in this process."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
import yaml

from konverge.apiserver.go.yaml import parse_all
from konverge.operators.nacos.desired import declared_version
from konverge.operators.nacos.resource import Nacos
from konverge.operators.nacos.versions import NacosVersion
from konverge.service import Catalogue, ServiceOptions
from konverge.service.options import CatalogueError
from tests.service.desk import ALL, SPACE, a_desk

pytestmark = pytest.mark.spec("N-22")

CLUSTER: dict[str, Any] = {
    "type": "cluster",
    "replicas": 3,
    "resources": {"limits": {"cpu": "1", "memory": "4Gi"}, "requests": {"cpu": "500m", "memory": "2Gi"}},
    "database": {"type": "mysql", "mysqlHost": "mysql.nacos", "mysqlUser": "nacos", "mysqlPassword": "s3cret"},
    "volume": {"enabled": True, "requests": {"storage": "10Gi"}, "storageClass": "fast"},
}


async def test_an_instance_is_created_with_quota_type_and_storage() -> None:
    async with a_desk() as desk:
        made = await desk.send("POST", ALL, {"name": "shop", "version": "2.0.4", "labels": {"a": "b"}, "spec": CLUSTER})
        assert made.status == 201
        assert made.headers.get("location") == f"{ALL}/shop"
        created = made.json
        assert (created["name"], created["namespace"], created["labels"]) == ("shop", SPACE, {"a": "b"})
        assert (created["type"], created["replicas"], created["phase"]) == ("cluster", 3, "Pending")
        assert (created["image"], created["version"]) == ("nacos/nacos-server:v2.0.4", "2.0.4")
        assert created["resources"] == CLUSTER["resources"]
        assert created["storage"] == {"database": "mysql", "volume": True, "size": "10Gi", "storageClass": "fast"}
        stored = await desk.admin.get(Nacos, "shop", SPACE)
        assert stored.spec.database.mysql_password == "s3cret"
        assert (await desk.send("GET", f"{ALL}/shop")).json == created


async def test_an_existing_instance_is_a_conflict() -> None:
    async with a_desk() as desk:
        await desk.create("shop")
        again = await desk.send("POST", ALL, {"name": "shop"})
        assert again.status == 409
        assert again.problem["reason"] == "AlreadyExists"
        assert '"shop" already exists' in again.problem["detail"]


WRONG = [
    ({"name": "x", "spec": {"type": "cluster", "replicas": 2}}, 422, ["spec.replicas"]),
    (
        {"name": "x", "spec": {"database": {"type": "mysql"}, "volume": {"enabled": True}}},
        422,
        ["spec.database.mysqlHost", "spec.database.mysqlCredentialsSecretRef", "spec.volume.requests"],
    ),
    ({"name": "x", "spec": {"replicas": "three"}}, 422, ["spec.replicas"]),
    ({"name": "x", "spec": {"replicaz": 3, "volume": {"size": 1}}}, 400, ["spec.replicaz", "spec.volume.size"]),
    ({"name": "x", "spec": {"env": [{"value": "1"}]}}, 422, ["spec.env[0].name"]),
    ({"name": "x", "labels": {"a b": "c"}}, 422, ["labels"]),
    ({"name": "X_"}, 422, ["name"]),
    ({"name": "x" * 51}, 422, ["name"]),
    ({"spec": {}}, 422, ["name"]),
    ({"name": "x", "version": "9.9.9"}, 422, ["version"]),
    ({"name": "x", "version": "2.4.3", "spec": {"image": "nacos/nacos-server:v2.4.3"}}, 422, ["version"]),
    ({"name": "x", "version": "2.4.3", "spec": {"version": "2.4.3"}}, 422, ["version"]),
    ({"name": "x", "spec": {"version": "2.0.4"}}, 422, ["spec.version"]),
    ({"name": "x", "quota": {}}, 422, ["quota"]),
    ({"name": "x", "spec": 3}, 422, ["spec"]),
    ({"name": "x", "labels": {f"l{n}": "v" for n in range(65)}}, 422, ["labels"]),
]


@pytest.mark.spec("N-88")
async def test_every_wrong_field_comes_back_with_its_path() -> None:
    async with a_desk() as desk:
        for body, status, fields in WRONG:
            refused = await desk.send("POST", ALL, body)
            assert refused.status == status, body
            assert sorted(error["field"] for error in refused.problem["errors"]) == sorted(fields)
            pointers = {error["pointer"] for error in refused.problem["errors"]}
            assert pointers == {"/" + field.replace(".", "/").replace("[0]", "/0") for field in fields}
            assert all(error["message"] for error in refused.problem["errors"])
        assert (await desk.send("GET", ALL)).json["items"] == []


UNREADABLE = [
    (b"{", {}, 400),
    (b'{"name": "x", "spec": {"a": ' + b"[" * 100_000, {}, 400),
    (b'{"name": "\xff"}', {}, 400),
    (b'{"name": "x"}', {"content_type": "text/plain"}, 415),
    (b'{"name": "x"}', {"content_type": ""}, 415),
    (b" " * 2_000_000, {}, 413),
]


async def test_bodies_that_cannot_be_read_are_refused() -> None:
    async with a_desk() as desk:
        for body, headers, status in UNREADABLE:
            refused = await desk.send("POST", ALL, body, **headers)
            assert refused.status == status, body[:100]
            assert refused.problem["detail"]


async def test_the_quota_is_modified_and_the_rest_stays() -> None:
    async with a_desk() as desk:
        await desk.create("shop", **CLUSTER)
        changed = await desk.send(
            "PATCH", f"{ALL}/shop", {"replicas": 5, "resources": {"limits": {"cpu": "2"}, "requests": None}}
        )
        assert changed.status == 200
        assert changed.json["replicas"] == 5
        assert changed.json["resources"] == {"limits": {"cpu": "2", "memory": "4Gi"}}
        assert changed.json["storage"]["size"] == "10Gi"
        upgraded = await desk.send(
            "PATCH", f"{ALL}/shop", {"version": "2.5.3"}, content_type="application/merge-patch+json"
        )
        assert (upgraded.json["image"], upgraded.json["replicas"]) == ("nacos/nacos-server:v2.5.3", 5)
        assert (await desk.admin.get(Nacos, "shop", SPACE)).spec.database.mysql_password == "s3cret"


@pytest.mark.spec("N-88")
async def test_another_version_takes_the_one_that_the_spec_declares_away() -> None:
    """It goes before the tag, so that a downgrade would not be held, and an upgrade would pass no gate."""
    async with a_desk() as desk:
        own = {"image": "harbor.example.com/nacos@sha256:" + "a" * 64, "version": "2.4.3"}
        await desk.create("shop", **CLUSTER, **own)
        assert declared_version((await desk.admin.get(Nacos, "shop", SPACE)).spec) == NacosVersion(2, 4, 3)
        await desk.send("PATCH", f"{ALL}/shop", {"replicas": 5})
        stored = await desk.admin.get(Nacos, "shop", SPACE)
        assert (stored.spec.image, stored.spec.version) == (own["image"], "2.4.3"), "nothing else takes it away"
        changed = await desk.send("PATCH", f"{ALL}/shop", {"version": "2.0.4"})
        assert (changed.status, changed.json["image"]) == (200, "nacos/nacos-server:v2.0.4")
        stored = await desk.admin.get(Nacos, "shop", SPACE)
        assert stored.spec.version is None
        assert declared_version(stored.spec) == NacosVersion(2, 0, 4)


@pytest.mark.spec("N-44")
async def test_an_instance_hibernates_and_wakes() -> None:
    async with a_desk() as desk:
        created = await desk.create("shop", **CLUSTER)
        assert created.json["hibernate"] is False
        asleep = await desk.send("PATCH", f"{ALL}/shop", {"hibernate": True})
        assert (asleep.status, asleep.json["hibernate"]) == (200, True)
        assert (await desk.admin.get(Nacos, "shop", SPACE)).spec.hibernate
        awake = await desk.send("PATCH", f"{ALL}/shop", {"hibernate": False})
        assert (awake.status, awake.json["hibernate"]) == (200, False)


IMPOSSIBLE = [
    ({"hibernate": "yes"}, "hibernate"),
    ({"replicas": 2}, "replicas"),
    ({"replicas": "3"}, "replicas"),
    ({"resources": {"limits": {"cpu": "much"}}}, "resources.limits.cpu"),
    ({"resources": {"limit": {}}}, "resources.limit"),
    ({"version": "1.0.0"}, "version"),
    ({"image": "other"}, "image"),
    ({}, ""),
]


async def test_a_change_that_cannot_be_is_refused_and_changes_nothing() -> None:
    async with a_desk() as desk:
        before = (await desk.create("shop", **CLUSTER)).json
        for body, field in IMPOSSIBLE:
            refused = await desk.send("PATCH", f"{ALL}/shop", body)
            assert refused.status in (400, 422), body
            assert [error["field"] for error in refused.problem["errors"]] == ([field] if field else [])
        assert (await desk.send("GET", f"{ALL}/shop")).json == before


async def test_a_change_with_if_match_fails_after_another_change() -> None:
    async with a_desk() as desk:
        tag = (await desk.create("shop", **CLUSTER)).headers.get("etag")
        assert (await desk.send("PATCH", f"{ALL}/shop", {"replicas": 5}, if_match=tag)).status == 200
        for method, body in (("PATCH", {"replicas": 7}), ("DELETE", None)):
            late = await desk.send(method, f"{ALL}/shop", body, if_match=tag)
            assert late.status == 412
            assert "read the instance again" in late.problem["detail"]
        assert (await desk.send("DELETE", f"{ALL}/shop", if_match='"x"')).status == 412
        assert (await desk.send("GET", f"{ALL}/shop")).json["replicas"] == 5


async def test_an_instance_is_deleted_by_name_and_namespace() -> None:
    async with a_desk() as desk:
        await desk.create("shop")
        assert (await desk.send("DELETE", f"{ALL}/shop")).status == 204
        gone = await desk.send("DELETE", f"{ALL}/shop")
        assert (gone.status, gone.problem["reason"]) == (404, "NotFound")


async def test_deleting_an_instance_with_a_finalizer_answers_202() -> None:
    async with a_desk() as desk:
        body = {"apiVersion": "nacos.io/v1alpha1", "kind": "Nacos", "metadata": {"name": "shop", "namespace": SPACE}}
        body["metadata"]["finalizers"] = ["nacos.io/held"]  # type: ignore[index]
        await desk.admin.create(body, resource=Nacos.resource)
        answer = await desk.send("DELETE", f"{ALL}/shop")
        assert (answer.status, answer.json["deleting"]) == (202, True)


async def test_a_dry_run_changes_nothing() -> None:
    async with a_desk() as desk:
        assert (await desk.send("POST", f"{ALL}?dryRun=true", {"name": "other"})).status == 201
        await desk.create("shop", **CLUSTER)
        assert (await desk.send("PATCH", f"{ALL}/shop?dryRun=true", {"replicas": 9})).json["replicas"] == 9
        assert (await desk.send("DELETE", f"{ALL}/shop?dryRun=true")).status in (202, 204)
        assert (await desk.send("DELETE", f"{ALL}/shop?dryRun=yes")).problem["errors"][0]["field"] == "dryRun"
        instances = (await desk.send("GET", ALL)).json["items"]
        assert [(item["name"], item["replicas"]) for item in instances] == [("shop", 3)]


async def test_pages_show_one_moment_and_lead_to_each_other() -> None:
    async with a_desk() as desk:
        for number in range(7):
            await desk.create(f"shop-{number}")
        first = await desk.send("GET", f"{ALL}?limit=3")
        assert [item["name"] for item in first.json["items"]] == ["shop-0", "shop-1", "shop-2"]
        assert first.json["remaining"] == 4
        await desk.create("shop-00")
        await desk.send("DELETE", f"{ALL}/shop-5")
        names, link = [], first.headers.get("link")
        while link:
            page = await desk.send("GET", link.partition(">")[0].removeprefix("<"))
            assert page.json["resourceVersion"] == first.json["resourceVersion"]
            names += [item["name"] for item in page.json["items"]]
            link = page.headers.get("link")
            assert bool(link) == bool(page.json["continueToken"])
        assert names == ["shop-3", "shop-4", "shop-5", "shop-6"]


async def test_a_page_of_a_moment_that_is_forgotten_is_gone() -> None:
    async with a_desk() as desk:
        for number in range(3):
            await desk.create(f"shop-{number}")
        token = (await desk.send("GET", f"{ALL}?limit=1")).json["continueToken"]
        await desk.create("later")
        desk.server.store.compact(desk.server.store.revision)
        gone = await desk.send("GET", f"{ALL}?limit=1&continue={quote(token)}")
        assert (gone.status, gone.problem["reason"]) == (410, "Expired")


MEANINGLESS = [
    "limit=0",
    "limit=501",
    "limit=x",
    "limit=-1",
    "limit=99999999999999999999",
    "limits=3",
    "limit=1&limit=2",
    "labelSelector=" + "a" * 5000,
    "labelSelector=%ff",
    "continue=nonsense",
    "labelSelector=a%20b%20c",
]


async def test_a_query_that_means_nothing_is_refused() -> None:
    async with a_desk() as desk:
        for query in MEANINGLESS:
            refused = await desk.send("GET", f"{ALL}?{query}")
            assert refused.status in (400, 422), query
            assert refused.problem["detail"]


async def test_instances_are_chosen_by_label_and_by_namespace() -> None:
    async with a_desk() as desk:
        await desk.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
        await desk.send("POST", ALL, {"name": "a", "labels": {"team": "shop"}})
        await desk.send("POST", "/api/v1/namespaces/other/instances", {"name": "b", "labels": {"team": "bank"}})
        for path, wanted in (
            ("/api/v1/instances", ["a", "b"]),
            ("/api/v1/instances?labelSelector=team%3Dbank", ["b"]),
            (ALL, ["a"]),
        ):
            assert [item["name"] for item in (await desk.send("GET", path)).json["items"]] == wanted


TEXTS: list[tuple[Any, str, str]] = [
    ([], "", "the body must be an object, not an array"),
    ({}, "name", "name: is missing"),
    ({"name": 5}, "name", "name: must be a string, not an integer"),
    ({"name": "a_b"}, "name", "name: must begin with a letter and have at most 50 lower-case letters, digits and '-'"),
    ({"name": "a", "nmae": "b"}, "nmae", "nmae: is not a known field"),
    ({"name": "a", "labels": {"team": 1}}, "labels[...]", "labels[...]: must be a string, not an integer"),
]


async def test_decoding_errors_use_the_names_of_json() -> None:
    async with a_desk() as desk:
        for body, field, detail in TEXTS:
            refused = await desk.send("POST", ALL, body)
            assert (refused.status, refused.problem["detail"]) == (422, detail)
            assert [error["field"] for error in refused.problem["errors"]] == [field]
        size = {"volume": {"enabled": True, "requests": {"storage": "10 GB"}}}
        refused = await desk.send("POST", ALL, {"name": "a", "spec": size})
        assert [(error["field"], error["message"]) for error in refused.problem["errors"]] == [
            ("spec.volume.requests.storage", '"10 GB" is not a quantity: write it as 2, 500m or 4Gi')
        ]
        for method, path, reason in (("PUT", f"{ALL}/a", "MethodNotAllowed"), ("GET", f"{ALL}?a=1&a=2", "BadRequest")):
            assert (await desk.send(method, path)).problem["reason"] == reason


NO_NAMES = ["..", "a%2Fb", "A", "a" * 254, "%00", "a%0d%0ab"]


async def test_names_that_no_object_can_have_never_reach_the_server() -> None:
    async with a_desk() as desk:
        for name in NO_NAMES:
            for path in (f"{ALL}/{name}", f"/api/v1/namespaces/{name}/instances"):
                refused = await desk.send("GET", path)
                assert (refused.status, refused.problem["reason"]) == (422, "Invalid"), path


async def test_the_versions_are_those_of_the_catalogue() -> None:
    catalogue = Catalogue(
        repository="harbor.cloud.io/nacos/nacos-server", releases=("2.0.4", "2.10.0"), default="2.0.4"
    )
    async with a_desk(ServiceOptions(catalogue=catalogue)) as desk:
        assert (await desk.send("GET", "/api/v1/versions")).json["items"] == [
            {"version": "2.10.0", "image": "harbor.cloud.io/nacos/nacos-server:v2.10.0", "default": False},
            {"version": "2.0.4", "image": "harbor.cloud.io/nacos/nacos-server:v2.0.4", "default": True},
        ]
        made = await desk.create("shop")
        assert made.json["image"] == "harbor.cloud.io/nacos/nacos-server:v2.0.4"


def test_a_catalogue_that_makes_no_sense_is_refused() -> None:
    for options in ({"releases": ("latest",)}, {"releases": ("v2.4.3",)}, {"releases": ("2.4.3",), "default": "2.0.4"}):
        with pytest.raises(CatalogueError):
            Catalogue(**options)  # type: ignore[arg-type]


async def test_secrets_are_never_shown() -> None:
    hidden = ("s3cret", "t0ken", "pr1vate", "us3r")
    env = [{"name": "A_TOKEN", "value": "t0ken"}]
    container = {"name": "nacos", "env": env, "args": ["--db-password", "us3r"]}
    spec = {
        **CLUSTER,
        "certification": {"enabled": True, "token": "t0ken"},
        "env": [
            {"name": "MYSQL_SERVICE_PASSWORD", "value": "pr1vate"},
            {"name": "JVM_XMS", "value": "1g"},
            {"name": "JAVA_OPT", "value": "-Xmx2g -Dmail.password=s3cret"},
        ],
        "config": "spring.datasource.password=us3r\nserver.port=8848",
        "k8sWrapper": {"PodSpec": {"containers": [container]}},
    }
    async with a_desk() as desk:
        applied = {
            "kubectl.kubernetes.io/last-applied-configuration": '{"spec":{"database":{"mysqlPassword":"s3cret"}}}',
            "example.com/previous": '{"spec":{"certification":{"token":"t0ken"}}}',
        }
        body = {"apiVersion": "nacos.io/v1alpha1", "kind": "Nacos", "spec": spec}
        await desk.admin.create(
            {**body, "metadata": {"name": "shop", "namespace": SPACE, "annotations": applied}}, resource=Nacos.resource
        )
        manifest = await desk.send("GET", f"{ALL}/shop/manifest")
        assert manifest.headers.get("content-type") == "application/yaml"
        shown = yaml.safe_load(manifest.body)
        assert shown["spec"]["database"]["mysqlPassword"] == "(hidden)"
        assert shown["spec"]["env"][1] == {"name": "JVM_XMS", "value": "1g"}
        assert "server.port=8848" in shown["spec"]["config"]
        for path in (f"{ALL}/shop/manifest", f"{ALL}/shop", ALL):
            body_text = (await desk.send("GET", path)).body.decode()
            assert [item for item in hidden if item in body_text] == []


@pytest.mark.spec("O-93")
async def test_a_manifest_means_the_same_to_kubectl() -> None:
    variables = [{"name": "N", "value": value} for value in ("1e5", "y", "0o14", "on")]
    async with a_desk() as desk:
        body = {"apiVersion": "nacos.io/v1alpha1", "kind": "Nacos", "spec": {"env": variables}}
        await desk.admin.create({**body, "metadata": {"name": "shop", "namespace": SPACE}}, resource=Nacos.resource)
        manifest = await desk.send("GET", f"{ALL}/shop/manifest")
        [shown] = parse_all(manifest.body)
        assert shown["spec"]["env"] == variables


async def test_events_are_listed_latest_first() -> None:
    async with a_desk() as desk:
        await desk.create("shop")
        for number, when in enumerate(("10:00:00", "12:00:00", "11:00:00")):
            await desk.admin.create(
                {
                    "apiVersion": "v1",
                    "kind": "Event",
                    "metadata": {"name": f"e{number}", "namespace": SPACE},
                    "involvedObject": {"kind": "Nacos", "name": "shop", "namespace": SPACE},
                    "reason": f"R{number}",
                    "message": "seen",
                    "type": "Normal",
                    "count": 2,
                    "firstTimestamp": "2026-01-01T09:00:00Z",
                    "lastTimestamp": f"2026-01-01T{when}Z",
                }
            )
        events = (await desk.send("GET", f"{ALL}/shop/events")).json["items"]
        assert [event["reason"] for event in events] == ["R1", "R2", "R0"]
        assert (events[0]["count"], events[0]["last"]) == (2, "2026-01-01T12:00:00Z")
