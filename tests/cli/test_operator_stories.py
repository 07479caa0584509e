"""`konverge why` says why the operator of an object ran last, where the operator can be asked."""

from __future__ import annotations

import asyncio
import json
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from konverge.cli import main, why
from konverge.cli.cluster_folders import ClusterFolder, Record
from konverge.cli.exit import UsageError
from konverge.cli.operator_stories import FOLDER, StoryPlace, announced, named_place, places_of, stories_of
from konverge.cli.terminal import Paint
from konverge.client import Client, MergePatch
from konverge.explain import Ref
from konverge.objects.kinds.core_v1 import ConfigMap, ServiceAccount
from konverge.objects.meta import ObjectMeta
from konverge.runtime import Context, Controller, Manager
from tests.runtime.objects import SPACE, config_map

URL = "https://127.0.0.1:6443"
REF = Ref("ConfigMap", "a", SPACE)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClusterFolder:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    folder = ClusterFolder("dev")
    folder.make()
    folder.write(Record(name="dev", pid=1, started="", since="", url=URL))
    return folder


@asynccontextmanager
async def operator(client: Client, folder: ClusterFolder) -> AsyncIterator[Manager]:
    async def reconcile(ctx: Context[ConfigMap]) -> None:
        if ctx.request.name == "a":
            await ctx.apply(ServiceAccount(metadata=ObjectMeta(name="child", annotations=ctx.obj.data)))

    manager = Manager(client, health_address=("127.0.0.1", 0), debug=True)
    manager.add(Controller(ConfigMap, reconcile, name="maps", owns=[ServiceAccount]))
    manager.debug_token = "for-one-user"
    async with manager.running(), announced(manager, folder.path, "konverge"):
        await client.create(config_map("a", color="red"))
        await until(manager, 1)
        await client.patch(ConfigMap, "a", MergePatch({"data": {"color": "blue"}}), SPACE)
        await until(manager, 2)
        yield manager


async def until(manager: Manager, count: int) -> None:
    """Until so many reconciles have written something."""
    while len([story for story in manager.story.reconciles() if story.writes]) < count:
        await asyncio.sleep(0.01)


@pytest.mark.spec("R-90")
async def test_why_shows_the_last_reconcile_of_a_local_operator(client: Client, folder: ClusterFolder) -> None:
    async with operator(client, folder):
        arguments = main.parser().parse_args(["why", "serviceaccount/child"])
        arguments.places = places_of(f"{URL}/")
        text, _ = await why.explain(client, arguments, SPACE, Paint(colours=False))
        arguments.output = "json"
        document, _ = await why.explain(client, arguments, SPACE, Paint(colours=False))
    assert "by maps, in" in text
    assert "because ConfigMap default/a updated: data.color red → blue" in text
    assert "wrote PATCH ServiceAccount child: metadata.annotations.color red → blue" in text
    reconciles = json.loads(document)["reconciles"]
    assert reconciles[0]["writes"][0]["changes"] == [
        {"path": "metadata.annotations.color", "old": "red", "new": "blue"}
    ]


@pytest.mark.spec("R-90")
async def test_where_it_is_asked_is_private_and_gone_afterwards(client: Client, folder: ClusterFolder) -> None:
    async with operator(client, folder):
        (file,) = (folder.path / FOLDER).iterdir()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert places_of("https://127.0.0.1:7000") == []  # another cluster
        (place,) = places_of(URL)
        stories, problems = await stories_of([StoryPlace(place.url, "another")], REF)
        assert stories == []
        assert "401" in problems[0]
    assert not file.exists()
    file.parent.mkdir(exist_ok=True)
    file.write_text("{}")
    assert places_of(URL) == []  # what cannot be read is left alone
    folder.clear()
    assert not file.exists()


async def test_an_operator_that_does_not_answer_is_said_and_nothing_more(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    await client.create(config_map("a"))
    arguments = main.parser().parse_args(["why", "configmap/a"])
    arguments.places = [StoryPlace("http://127.0.0.1:1")]
    text, code = await why.explain(client, arguments, SPACE, Paint(colours=False))
    assert code == 0
    assert "not looked at: reconciles of the operator at http://127.0.0.1:1" in text


def test_an_operator_is_named_by_a_url(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    assert named_place("https://op:8443/", token, "ca.pem") == StoryPlace("https://op:8443", "secret", "ca.pem")
    for url, file in (("op:8443", None), ("http://op", tmp_path / "absent")):
        with pytest.raises(UsageError):
            named_place(url, file, "")
