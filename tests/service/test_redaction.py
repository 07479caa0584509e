"""What is hidden, and what is not."""

from __future__ import annotations

import doctest
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.client import Invalid
from konverge.objects import to_dict
from konverge.objects.meta import Status, StatusCause, StatusDetails
from konverge.service import options, problems, redaction, watching
from konverge.service.problems import from_client
from konverge.service.redaction import HIDDEN, properties, shown
from konverge.service.views import instance

pytestmark = pytest.mark.spec("N-22")


@pytest.mark.parametrize("module", [options, problems, redaction, watching], ids=lambda module: module.__name__)
def test_the_examples_in_the_code(module: Any) -> None:
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


def test_references_to_secrets_are_no_secrets() -> None:
    spec = {
        "database": {"mysqlCredentialsSecretRef": {"name": "db", "usernameKey": "user", "passwordKey": "password"}},
        "certification": {"tokenSecretRef": {"name": "auth", "key": "token"}, "token_expire_seconds": "18000"},
        "ingress": {"tlsSecretName": "tls"},
        "adminSecretChecksum": "abc",
        "imagePullSecrets": [{"name": "registry"}],
    }
    assert shown({"spec": spec}) == {"spec": spec}


def test_a_secret_that_goes_on_in_the_next_line_is_hidden_whole() -> None:
    assert properties("a.password=one\\\n  two\\\n  three\nb=c") == "a.password=(hidden)\nb=c"
    assert properties("a.password one\nb.token\ttwo") == "a.password (hidden)\nb.token\t(hidden)"


@pytest.mark.parametrize(
    "piece",
    [
        *("a.", "a:", "://a:", "a=b\\\n", "?password=", " \t", "\\", "a://b:c", "a=", 'a="', "a='b ", "-a ", '"a":'),
        *('\\"', "a: Invalid value: ", "eyJaaaaaaaa.", "Bearer ", "-----BEGIN PRIVATE KEY-----", "password=\\"),
        *('"password":\\"', '"password":"', "'password':'"),
    ],
)
def test_no_text_takes_long(piece: str) -> None:
    """A pattern that tried every beginning with every end would take hours here, and the test's time limit."""
    text = piece * (200_000 // len(piece))
    assert shown({"spec": {"config": text, "image": text}})["spec"]["image"]


def test_the_redacted_resource_is_a_copy() -> None:
    whole = {"metadata": {"managedFields": [1]}, "spec": {"database": {"mysqlPassword": "s3cret"}}}
    assert shown(whole) == {"metadata": {}, "spec": {"database": {"mysqlPassword": HIDDEN}}}
    assert whole["spec"]["database"]["mysqlPassword"] == "s3cret"  # type: ignore[call-overload, index]


def test_comments_and_lines_without_a_value_stay() -> None:
    text = (
        "# db.password=x is set below\ndb.password.0 = pw\nempty.password=\nnacos.core.auth.server.identity.value: v\n"
    )
    assert properties(text) == (
        "# db.password=(hidden) is set below\ndb.password.0 = (hidden)\nempty.password=\n"
        "nacos.core.auth.server.identity.value: (hidden)\n"
    )


@pytest.mark.parametrize("odd", [None, 3, "x", [], {"a": []}, [3, None]])
def test_a_resource_of_another_form_is_shown_as_far_as_it_goes(odd: Any) -> None:
    for whole in (
        {"metadata": odd, "spec": odd, "status": odd},
        {"spec": {"volume": odd, "replicas": odd, "type": odd}},
    ):
        assert instance(whole).phase == "Pending"
    shown_instance = instance(
        {"status": {"conditions": odd, "kubeConditions": odd, "phase": odd, "readyReplicas": odd}}
    )
    assert shown_instance.ready_replicas in (0, 3)


def test_the_rest_of_a_text_is_shown() -> None:
    """What is hidden is the secret, and not what stands beside it."""
    spec = {
        "image": "registry:5000/nacos/nacos-server:v2.4.3",
        "env": [
            {"name": "JAVA_OPT", "value": "-Xms1g -Ddb.password=pw -Dserver.port=8848"},
            {"name": "DB_PASSWORD_PROD", "value": "pw"},
            {"name": "MODE", "value": "cluster"},
        ],
        "k8sWrapper": {"PodSpec": {"containers": [{"args": ["--name", "nacos", "--db-password", "pw", "--port=1"]}]}},
        "volume": {"volumeClaimTemplate": {"metadata": {"annotations": {"x/applied-by": "pw", "team": "shop"}}}},
        "pin": {"password": 1234, "passwordKey": "key"},
    }
    message = "spec.certification.token: 5 bytes are too few, Nacos 2.4.3 needs 32"
    clean = shown({"spec": spec, "status": {"message": message, "admin": {"lastSecretResourceVersion": "7"}}})
    assert clean["status"] == {"message": message, "admin": {"lastSecretResourceVersion": "7"}}
    assert clean["spec"] == {
        "image": "registry:5000/nacos/nacos-server:v2.4.3",
        "env": [
            {"name": "JAVA_OPT", "value": "-Xms1g -Ddb.password=(hidden) -Dserver.port=8848"},
            {"name": "DB_PASSWORD_PROD", "value": "(hidden)"},
            {"name": "MODE", "value": "cluster"},
        ],
        "k8sWrapper": {
            "PodSpec": {"containers": [{"args": ["--name", "nacos", "--db-password", "(hidden)", "--port=1"]}]}
        },
        "volume": {"volumeClaimTemplate": {"metadata": {"annotations": {"team": "shop"}}}},
        "pin": {"password": "(hidden)", "passwordKey": "key"},
    }


def test_a_refusal_repeats_no_stored_secret() -> None:
    text = 'spec.database.mysqlPassword: Invalid value: "s3cret": too short'
    cause = StatusCause(field="spec.database.mysqlPassword", message=text.partition(": ")[2])
    status = Status(message=f'Nacos.nacos.io "a" is invalid: {text}', details=StatusDetails(causes=[cause]))
    details = from_client(Invalid(status)).details
    assert "s3cret" not in str(details)
    hidden = "Invalid value: (hidden): too short"
    assert details.detail == f'Nacos.nacos.io "a" is invalid: spec.database.mysqlPassword: {hidden}'
    assert [error.message for error in details.errors] == [hidden]


NAMES = st.sampled_from(["password", "mysqlPassword", "token", "A_SECRET", "db.password.0", "userPwd", "accessKey"])
PLAIN = st.sampled_from(["image", "a", "name", "resources", "volume", "limits", "labels", "config"])
SECRET = "S3CR3T"


@st.composite
def resources(draw: st.DrawFn) -> dict[str, Any]:
    """Resources with a secret in any of the places that secrets are put."""
    hidden = st.one_of(
        NAMES.map(lambda name: {name: [SECRET, SECRET]}),
        NAMES.map(lambda name: {"env": [{"name": "JAVA_OPT", "value": f"-Xmx1g -D{name}={SECRET} -Da=b"}]}),
        NAMES.map(
            lambda name: {"args": ["start", f"--{name}", SECRET, f"-D{name}='a {SECRET}'", f"--{name} {SECRET}"]}
        ),
        NAMES.map(lambda name: {"command": ["sh", "-c", f'export {name}="a {SECRET}"; {name}=\\ {SECRET} run']}),
        NAMES.map(lambda name: {"annotations": {"note": f'{{"spec": {{"{name}": "{SECRET}"}}}}'}}),
        NAMES.map(lambda name: {"message": f'refused: {{\\"{name}\\":\\"a\\\\\\"{SECRET}\\"}} "{name}": "{SECRET}"'}),
        NAMES.map(lambda name: {"text": f'spec.{name}: Invalid value: "{SECRET}": too short'}),
        NAMES.map(lambda name: {"text": f"first: line\n{name}: {SECRET}"}),
        st.just({"annotations": {"objectset.rio.cattle.io/applied": SECRET, "a.b/last-applied-configuration": SECRET}}),
        st.just({"httpHeaders": [{"name": "Authorization", "value": f"Basic {SECRET}"}], "x": f"Bearer {SECRET}abc"}),
        st.just({"text": f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n-----END RSA PRIVATE KEY-----"}),
        NAMES.map(lambda name: {name: SECRET}),
        NAMES.map(lambda name: {"env": [{"name": name, "value": SECRET}]}),
        NAMES.map(lambda name: {"config": f"a=b\n  {name} = {SECRET}\\\n {SECRET}\nc=d"}),
        st.just({"image": f"jdbc:mysql://root:{SECRET}@db/x?useSSL=1&password={SECRET}"}),
    )
    deeper = st.recursive(
        hidden,
        lambda inner: st.one_of(
            st.dictionaries(PLAIN, inner, min_size=1, max_size=3), st.lists(inner, min_size=1, max_size=3).map(as_items)
        ),
        max_leaves=6,
    )
    return {name: draw(deeper) for name in ("metadata", "spec", "status")}


def as_items(items: list[Any]) -> dict[str, Any]:
    return {"items": items}


@given(resources())
def test_no_secret_is_shown_wherever_it_is_put(resource: dict[str, Any]) -> None:
    assert SECRET in repr(resource)
    assert SECRET not in repr(shown(resource))
    assert SECRET not in repr(instance(resource))


def test_the_servers_of_an_instance_are_not_its_conditions() -> None:
    """In the resource both are in one list; an entry with a pod is a server."""
    ready = {"type": "Ready", "status": "True", "reason": "Running"}
    server = {"type": "leader", "status": "true", "podName": "nacos-0"}
    seen = instance({"status": {"conditions": [server, ready], "kubeConditions": [ready]}})
    assert [(item.pod, item.role) for item in seen.servers] == [("nacos-0", "leader")]
    assert [(state.type, state.status) for state in seen.conditions] == [("Ready", "True")]


@pytest.mark.spec("C-40")
def test_the_upgrade_of_an_instance_is_shown_and_one_without_has_none() -> None:
    record = {
        "from": "2.4.3",
        "to": "3.0.3",
        "image": "nacos/nacos-server:v3.0.3",
        "step": "Rolling",
        "since": "2026-01-02T03:04:05Z",
        "halted": "MembersNotUp",
        "message": "nacos-2 is away",
        "membersDone": ["nacos-1", 3],
        "backup": "nightly",
    }
    seen = instance({"status": {"upgrade": record}}).upgrade
    assert seen is not None
    assert to_dict(seen) == {
        "from": "2.4.3",
        "to": "3.0.3",
        "step": "Rolling",
        "since": "2026-01-02T03:04:05Z",
        "halted": "MembersNotUp",
        "message": "nacos-2 is away",
        "membersDone": ["nacos-1"],
        "backup": "nightly",
    }
    for odd in (None, 3, "x", [], {}, {"step": "Rolling"}, {"to": 3}):
        assert instance({"status": {"upgrade": odd}}).upgrade is None
    least = instance({"status": {"upgrade": {"to": "3.0.3", "membersDone": "nacos-0"}}}).upgrade
    assert least is not None
    assert (least.to, least.members_done, least.halted) == ("3.0.3", [], "")
