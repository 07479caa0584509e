"""Whose an object is, without a cluster."""

from __future__ import annotations

import pytest

from konverge.objects import ObjectMeta, OwnerReference
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.operators.wukong.ownership import adoption, is_marked, may_write
from konverge.operators.wukong.protection import MESSAGE, policies
from konverge.operators.wukong.resource import AnyWukong

pytestmark = pytest.mark.spec("W-16")

WEB = AnyWukong(kind="Wukong", metadata=ObjectMeta(name="web", uid="1"))
ASKS = adoption("web")


def claim(
    *owners: tuple[str, bool], annotations: dict[str, str] | None = None, labels: dict[str, str] | None = None
) -> PersistentVolumeClaim:
    references = [
        OwnerReference(api_version="v1", kind="X", name="x", uid=uid, controller=controls) for uid, controls in owners
    ]
    meta = ObjectMeta(name="web-a", annotations=annotations or {}, labels=labels or {}, owner_references=references)
    return PersistentVolumeClaim(metadata=meta)


@pytest.mark.parametrize(
    ("child", "ours"),
    [
        (claim(), False),
        (claim(("1", True)), True),
        (claim(("1", False)), False),
        (claim(("2", True)), False),
        (claim(("2", True), annotations=ASKS), False),
        (claim(("2", False), annotations=ASKS), True),
        (claim(annotations=ASKS), True),
        (claim(annotations=adoption("other")), False),
        (claim(annotations={"konverge.dev/adopt-by": "WebApp/web"}), False),
        (claim(annotations={"konverge.dev/adopt-by": ""}), False),
        (claim(labels={"vm.novasphere.dev/wukong": "web"}), False),
    ],
)
def test_ours_is_what_our_uid_controls_or_what_asks_for_it(child: PersistentVolumeClaim, ours: bool) -> None:
    assert may_write(WEB, child) is ours


@pytest.mark.parametrize(
    ("child", "marked"),
    [
        (claim(), False),
        (claim(labels={"vm.novasphere.dev/wukong": "web"}), True),
        (claim(labels={"vm.novasphere.dev/wukong": "other"}), False),
        (claim(annotations={"vm.novasphere.dev/requested-size": "1Gi"}), True),
        (claim(annotations={"else": "1Gi"}), False),
    ],
)
def test_marks_of_earlier_versions(child: PersistentVolumeClaim, marked: bool) -> None:
    assert is_marked("web", child) is marked


@pytest.mark.spec("W-18")
def test_the_policy_is_about_deletions_of_wukongs_and_is_bound() -> None:
    policy, binding = policies("vms")
    assert policy["spec"] == {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": ["vm.novasphere.dev"],
                    "apiVersions": ["*"],
                    "operations": ["DELETE"],
                    "resources": ["wukongs"],
                }
            ]
        },
        "validations": [
            {
                "expression": "!has(oldObject.spec.deletionProtection) || !oldObject.spec.deletionProtection",
                "message": MESSAGE,
                "reason": "Forbidden",
            }
        ],
    }
    assert binding["spec"] == {"policyName": policy["metadata"]["name"], "validationActions": ["Deny"]}
    assert policy["metadata"]["name"] == "vms-deletion-protection"
