"""What is known of a user's password, and what is written, beside servers that the test answers for."""

from __future__ import annotations

import base64
import hashlib
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from konverge.client import AlreadyExists, MergePatch
from konverge.objects import ObjectMeta, Status
from konverge.objects.kinds.core_v1 import Secret
from konverge.objects.times import now
from konverge.operators.nacos.content.kinds import ContentStatus, KeyRef, NacosRef, NacosUser, NacosUserSpec
from konverge.operators.nacos.content.place import ContentError, Tools
from konverge.operators.nacos.content.user import UserReconciler
from konverge.operators.nacos.server import HttpNacosServers
from konverge.runtime import Request, set_controller_reference

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-30")]
OLD = "2020-01-01T00:00:00Z"


class Api:
    """One user, its password and its roles."""

    def __init__(self, *, exists: bool = True, password: str = "word", signs_in: bool = True) -> None:
        self.exists = exists
        self.password = password
        self.signs_in = signs_in
        self.roles = frozenset({"writers", "readers"})
        self.calls: list[tuple[str, ...]] = []

    async def has_user(self, username: str) -> bool:
        return self.exists and username == "ann"

    async def roles_of(self, username: str) -> frozenset[str]:
        return self.roles if username == "ann" else frozenset()

    async def accepts(self, username: str, password: str) -> bool:
        self.calls.append(("accepts",))
        return (username, password) == ("ann", self.password)

    def __getattr__(self, name: str) -> Any:
        async def call(*arguments: str) -> None:
            self.calls.append((name, *arguments))

        return call


def user(**status: Any) -> NacosUser:
    spec = NacosUserSpec(
        nacos_ref=NacosRef(name="nacos"),
        username="ann",
        password_secret_ref=KeyRef(name="ann", key="word"),
        roles=["readers", "writers"],
    )
    meta = ObjectMeta(name="ann", namespace="default", uid="u1")
    return NacosUser(metadata=meta, spec=spec, status=ContentStatus(**status))


def secret(password: str = "word", name: str = "ann", key: str = "word") -> Secret:
    data = {key: base64.b64encode(password.encode()).decode()}
    return Secret(metadata=ObjectMeta(name=name, namespace="default", uid="s1"), data=data)


def mark(password: str) -> str:
    return hashlib.sha256(f"s1\0{password}".encode()).hexdigest()[:16]


class Ctx(SimpleNamespace):
    def __init__(self, obj: NacosUser, *secrets: Secret, deleting: bool = False) -> None:
        self.obj, self.deleting, self.request = obj, deleting, Request("default", "ann")
        self.secrets = {each.metadata.name: each for each in secrets}
        self.created: list[Secret] = []
        self.patched: list[tuple[str, str, Any]] = []
        self.client = self
        self.live: Secret | None = None

    async def get(self, kind: type[Any], name: str, namespace: str = "") -> Secret | None:
        return self.live if namespace else self.secrets.get(name)

    async def patch(self, kind: type[Any], name: str, patch: MergePatch, namespace: str) -> Secret:
        self.patched.append((name, namespace, patch.body))
        found = self.live or self.secrets[name]
        return msgspec.structs.replace(found, data={**found.data, "username": "YW5u"})

    async def create(self, made: Secret) -> Secret:
        self.created.append(made)
        if self.live is not None:
            raise AlreadyExists(Status(code=409))
        password = (made.string_data or {}).get("password", "")
        made.data = {"username": "YW5u", "password": base64.b64encode(password.encode()).decode()}
        return made


RECONCILER = UserReconciler(Tools(servers=HttpNacosServers()))


async def observe(ctx: Any, api: Any) -> str | None:
    return await RECONCILER.observe(ctx, api)


# ------------------------------------------------------------------ what is desired


async def test_a_password_is_marked_by_its_secret_and_itself() -> None:
    desired = await RECONCILER.desired(Ctx(user(), secret()), Api())  # type: ignore[arg-type]
    assert (desired.password, desired.mark) == ("word", mark("word"))
    assert desired.digest == f"{mark('word')}:readers,writers"
    assert "word" not in repr(desired).replace(desired.mark, "")


@pytest.mark.parametrize("secrets", [[], [secret("")], [secret(key="other")]], ids=["none", "empty", "another key"])
async def test_a_secret_without_a_password_is_missing(secrets: list[Secret]) -> None:
    with pytest.raises(ContentError) as caught:
        await RECONCILER.desired(Ctx(user(), *secrets), Api())  # type: ignore[arg-type]
    assert caught.value.reason == "SecretMissing"
    assert caught.value.message == "there is no Secret ann with a password under word"


def generated() -> NacosUser:
    obj = user()
    obj.spec.password_secret_ref = None
    return obj


async def test_a_password_is_made_once_and_is_the_users_to_change() -> None:
    ctx = Ctx(generated())
    first = await RECONCILER.desired(ctx, Api())  # type: ignore[arg-type]
    (made,) = ctx.created
    assert (made.metadata.name, made.metadata.namespace) == ("ann-nacos-user", "default")
    assert made.string_data is not None
    assert made.string_data["username"] == "ann"
    assert first.password == made.string_data["password"]
    assert len(first.password) == 32
    assert [(owner.uid, owner.controller) for owner in made.metadata.owner_references] == [("u1", True)]
    theirs = secret("another", "ann-nacos-user", "password")
    set_controller_reference(ctx.obj, theirs)
    again = Ctx(generated(), theirs)
    assert (await RECONCILER.desired(again, Api())).password == "another"  # type: ignore[arg-type]
    assert again.created == []
    empty = secret("", "ann-nacos-user", "password")
    set_controller_reference(ctx.obj, empty)
    with pytest.raises(ContentError, match="there is no Secret ann-nacos-user with a password under password"):
        await RECONCILER.desired(Ctx(generated(), empty), Api())  # type: ignore[arg-type]


@pytest.mark.parametrize("username", ["YW5u", "Y2hhbmdlZA==", "", "%"], ids=["ann", "changed", "none", "no text"])
async def test_the_name_in_the_secret_is_put_back_and_the_password_is_not(username: str) -> None:
    made = secret("another", "ann-nacos-user", "password")
    made.data["username"] = username
    ctx = Ctx(generated(), made)
    set_controller_reference(ctx.obj, made)
    assert (await RECONCILER.desired(ctx, Api())).password == "another"  # type: ignore[arg-type]
    body = {"metadata": {"uid": "s1"}, "stringData": {"username": "ann"}}
    assert ctx.patched == ([] if username == "YW5u" else [("ann-nacos-user", "default", body)])


@pytest.mark.parametrize("ours", [True, False])
async def test_a_secret_that_the_cache_does_not_show_yet_is_read(ours: bool) -> None:
    ctx = Ctx(generated())
    ctx.live = secret("another", "ann-nacos-user", "password")
    if ours:
        set_controller_reference(ctx.obj, ctx.live)
        assert (await RECONCILER.desired(ctx, Api())).password == "another"  # type: ignore[arg-type]
        return
    with pytest.raises(ContentError) as caught:
        await RECONCILER.desired(ctx, Api())  # type: ignore[arg-type]
    assert caught.value.reason == "NotOwned"
    assert caught.value.message.startswith("Secret ann-nacos-user belongs to others; name it in passwordSecretRef")


# ------------------------------------------------------------------ what is observed

ROLES = "readers,writers"


async def test_a_user_that_is_not_there() -> None:
    assert await observe(Ctx(user(), secret()), Api(exists=False)) is None


@pytest.mark.parametrize(
    ("left", "age", "password", "signs_in", "observed", "asked"),
    [
        ("word", "new", "theirs", True, mark("word"), False),
        ("word", "old", "word", True, mark("word"), True),
        ("word", "old", "theirs", True, "changed", True),
        ("word", "old", "theirs", False, mark("word"), False),
        ("earlier", "new", "word", True, mark("word"), True),
        ("earlier", "new", "earlier", True, mark("earlier"), True),
        ("earlier", "old", "earlier", False, mark("earlier"), False),
        ("", "old", "word", True, mark("word"), True),
        ("", "old", "theirs", True, "changed", True),
        ("", "old", "word", False, "changed", False),
    ],
    ids=[
        "just written",
        "as it was left",
        "changed by others",
        "where no one signs in",
        "rotated and written by a killed process",
        "rotated",
        "rotated where no one signs in",
        "made by a killed process",
        "made by others",
        "made by no one knows whom",
    ],
)
async def test_a_password_is_as_it_was_left_unless_a_login_says_otherwise(
    left: str, age: str, password: str, signs_in: bool, observed: str, asked: bool
) -> None:
    status = {"applied": f"{mark(left)}:{ROLES}" if left else "", "applied_time": now() if age == "new" else OLD}
    api = Api(password=password, signs_in=signs_in)
    assert await observe(Ctx(user(**status), secret()), api) == f"{observed}:{ROLES}"
    assert (("accepts",) in api.calls) is asked


async def test_of_a_user_that_goes_nothing_but_its_roles_is_asked() -> None:
    api = Api(password="theirs")
    obj = user(applied=f"{mark('word')}:readers", applied_time=OLD)
    assert await observe(Ctx(obj, deleting=True), api) == f"{mark('word')}:{ROLES}", "its Secret may be gone"
    assert api.calls == []


@pytest.mark.parametrize(
    ("signs_in", "applying", "observed", "wrote"),
    [
        (True, "m:readers", "m:", True),
        (True, "m:readers", "changed:readers", False),
        (False, "m:readers", "changed:", True),
    ],
)
def test_whose_user_it_is(signs_in: bool, applying: str, observed: str, wrote: bool) -> None:
    assert RECONCILER.wrote(Api(signs_in=signs_in), applying, observed) is wrote  # type: ignore[arg-type]


# ------------------------------------------------------------------ what is written


@pytest.mark.parametrize(
    ("exists", "password", "signs_in", "written"),
    [
        (False, "", True, [("create_user", "ann", "word")]),
        (True, "word", True, [("accepts",)]),
        (True, "theirs", True, [("accepts",), ("set_password", "ann", "word")]),
        (True, "word", False, [("set_password", "ann", "word")]),
    ],
)
async def test_a_password_is_written_where_it_is_another(
    exists: bool, password: str, signs_in: bool, written: list[tuple[str, ...]]
) -> None:
    obj = user()
    obj.spec.roles = ["b", "a", "readers"]
    ctx, api = Ctx(obj, secret()), Api(exists=exists, password=password, signs_in=signs_in)
    desired = await RECONCILER.desired(ctx, api)  # type: ignore[arg-type]
    await RECONCILER.write(ctx, api, desired, exists=exists)  # type: ignore[arg-type]
    roles = [("add_role", "a", "ann"), ("add_role", "b", "ann"), ("remove_role", "writers", "ann")]
    assert api.calls == [*written, *roles]


async def test_a_user_goes_after_its_roles() -> None:
    api = Api()
    await RECONCILER.remove(Ctx(user()), api)  # type: ignore[arg-type]
    assert api.calls == [
        ("remove_role", "readers", "ann"),
        ("remove_role", "writers", "ann"),
        ("delete_user", "ann"),
    ]
