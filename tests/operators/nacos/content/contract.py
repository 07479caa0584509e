"""What the operator's client of content relies on, of simulated and of real servers alike."""

from __future__ import annotations

from konverge.operators.nacos.content.api import PUBLIC, ConfigKey, ContentApi, digest

ODD = "名字: a&b=c+d%20 \t\"'\\\n" + "x" * 50_000
"""Not ASCII, with what forms and JSON escape, and longer than a packet."""


async def check_namespaces_and_configs(api: ContentApi) -> None:
    assert "dev" not in await api.namespaces()
    await api.create_namespace("dev", "Development", "of the team")
    space = (await api.namespaces())["dev"]
    assert (space.namespace_show_name, space.namespace_desc, space.config_count) == ("Development", "of the team", 0)
    await api.update_namespace("dev", "Staging", "of all")
    space = (await api.namespaces())["dev"]
    assert (space.namespace_show_name, space.namespace_desc) == ("Staging", "of all")
    for namespace in (PUBLIC, "dev"):
        await check_configs(api, namespace)
    key = ConfigKey("dev", "DEFAULT_GROUP", "app.yaml")
    await api.publish(key, "kept", "text", "")
    assert (await api.namespaces())["dev"].config_count == 1
    assert await api.config(ConfigKey(PUBLIC, "DEFAULT_GROUP", "app.yaml")) is None, "each namespace has its own"
    await api.delete_config(key)
    await api.delete_namespace("dev")
    await api.delete_namespace("dev")
    assert set(await api.namespaces()) == {PUBLIC}


async def check_configs(api: ContentApi, namespace: str = PUBLIC) -> None:
    key = ConfigKey(namespace, "DEFAULT_GROUP", "app.yaml")
    assert await api.config(key) is None
    for content, type in (("a: 1", "yaml"), (ODD, "text")):
        await api.publish(key, content, type, "for all")
        stored = await api.config(key)
        assert stored is not None
        assert (stored.content, stored.type, stored.md5) == (content, type, digest(content))
    await api.publish(key, "a: 3", "yaml", "")
    assert await api.earlier_content(key, digest("a: 1")) == "a: 1"
    assert await api.earlier_content(key, digest(ODD)) == ODD
    assert await api.earlier_content(key, digest("never")) is None
    await api.delete_config(key)
    await api.delete_config(key)
    assert await api.config(key) is None


async def check_users(api: ContentApi) -> None:
    assert not await api.has_user("ann")
    await api.create_user("ann", "first+&=")
    await api.create_user("annabel", "other")
    assert await api.has_user("ann")
    assert await api.roles_of("ann") == frozenset()
    assert not await api.has_role("readers")
    await api.add_role("readers", "ann")
    await api.add_role("writers", "ann")
    await api.add_role("writers", "annabel")
    assert await api.roles_of("ann") == {"readers", "writers"}
    assert await api.has_role("readers")
    await api.grant("readers", "public:*:*", "r")
    await api.grant("writers", "dev:*:*", "rw")
    assert await api.permissions_of("readers") == {("public:*:*", "r")}
    await api.revoke("readers", "public:*:*", "r")
    assert await api.permissions_of("readers") == frozenset()
    await api.revoke("writers", "dev:*:*", "rw")
    await api.set_password("ann", "second")
    for role in ("readers", "writers"):
        await api.remove_role(role, "ann")
    await api.remove_role("writers", "annabel")
    assert await api.roles_of("ann") == frozenset()
    for name in ("ann", "annabel"):
        await api.delete_user(name)
        assert not await api.has_user(name)
