"""What `konverge up -f` reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from konverge.cli.manifest_files import ManifestError, check_sources, files_of, read_manifests

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\n"


async def names(*sources: Path | str, stdin: str = "") -> list[str]:
    return [manifest.obj["metadata"]["name"] for manifest in await read_manifests(map(str, sources), stdin)]


@pytest.mark.spec("O-23")
async def test_files_folders_lists_and_standard_input(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "b.yaml").write_text(POD % "b1" + "---\n---\n" + POD % "b2")
    pods = {"apiVersion": "v1", "kind": "List", "items": [yaml.safe_load(POD % "c")]}
    (tmp_path / "deep" / "c.json").write_text(json.dumps(pods))
    (tmp_path / ".git" / "d.yaml").write_text(POD % "hidden")
    (tmp_path / "notes.txt").write_text("not for the cluster")
    assert await names(tmp_path) == ["b1", "b2", "c"]
    assert await names(tmp_path / "b.yaml", "-", stdin=POD % "in") == ["b1", "b2", "in"]
    assert [path.name for path in files_of([str(tmp_path), "-"])] == ["b.yaml", "c.json", "notes.txt"]


@pytest.mark.spec("O-23")
async def test_folders_that_are_links_are_not_entered_but_files_that_are_links_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    folder.mkdir()
    (folder / "a.yaml").write_text(POD % "a")
    (tmp_path / "elsewhere.yaml").write_text(POD % "b")
    (folder / "b.yaml").symlink_to(tmp_path / "elsewhere.yaml")
    (folder / "here").symlink_to(".")
    (folder / "again").symlink_to(".")
    (tmp_path / "link").symlink_to(folder)
    assert [path.name for path in files_of([str(folder)])] == ["a.yaml", "b.yaml"]
    assert await names(folder) == ["a", "b"]
    assert await names(tmp_path / "link") == ["a", "b"], "what the user names is entered"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [\n", "line 2"),
        ("- a\n", "not an object"),
        ("kind: Pod\nmetadata: {name: a}\n", "apiVersion is missing"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {generateName: a}\n", r"metadata\.name of the Pod"),
        (POD % "a" + "---\n" + POD % "a", "document 1 as well"),
        (POD % "a, namespace: 12", r"metadata\.namespace of the Pod is not a text"),
        (POD % "a, namespace: [x]", r"metadata\.namespace"),
        (POD % "a, labels: 5", r"metadata\.labels of the Pod is not a map"),
        (POD % "a, annotations: [x]", r"metadata\.annotations of the Pod is not a map"),
        ("apiVersion: v1\nkind: List\nitems: 3\n", "items of the List is not a list"),
        ("apiVersion: v1\nkind: List\nitems: {a: b}\n", "items of the List is not a list"),
        (POD % "a" + "spec: &a {b: *a}\n", "recursive|contains itself"),
        ("--- {}\n---\n" + "[" * 5000, "exceeded max depth"),
    ],
)
@pytest.mark.spec("O-23")
async def test_what_cannot_be_used_is_named(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "app.yaml"
    file.write_text(text)
    with pytest.raises(ManifestError, match=message) as caught:
        await names(file)
    assert str(file) in str(caught.value)


@pytest.mark.spec("O-23")
async def test_yaml_means_what_it_means_to_kubectl(tmp_path: Path) -> None:
    file = tmp_path / "app.yaml"
    data = "at: 10:30\n  day: 2026-01-02\n  on: b\n  12: c\n  octal: 0o17\n  float: 1e3\n  yes: {y: n}\n"
    file.write_text(f"{POD % 'a'}data:\n  {data}---\n{POD % 'b, annotations: , labels: , namespace: '}")
    first, second = await read_manifests([str(file)])
    assert first.obj["data"] == {
        "at": "10:30",
        "day": "2026-01-02",
        "true": {"true": False},
        "12": "c",
        "octal": 15,
        "float": 1000.0,
    }
    assert second.obj["metadata"] == {"name": "b", "annotations": None, "labels": None, "namespace": None}


def test_a_source_that_does_not_exist_is_named(tmp_path: Path) -> None:
    check_sources([str(tmp_path), "-"])
    with pytest.raises(ManifestError, match="does not exist"):
        check_sources([str(tmp_path / "typo")])


def test_a_folder_that_needs_a_tool_says_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    (tmp_path / "Chart.yaml").touch()
    with pytest.raises(ManifestError, match="helm, which is not on the PATH"):
        check_sources([str(tmp_path)])
    (tmp_path / "Chart.yaml").rename(tmp_path / "kustomization.yaml")
    with pytest.raises(ManifestError, match="kubectl, which is not on the PATH"):
        check_sources([str(tmp_path)])


def tool(folder: Path, name: str, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


@pytest.mark.blocking
@pytest.mark.spec("O-23")
async def test_charts_and_kustomizations_are_rendered_by_their_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chart, kustomization = tmp_path / "shop", tmp_path / "overlay"
    for folder, file in ((chart, "Chart.yaml"), (kustomization, "kustomization.yaml")):
        folder.mkdir()
        (folder / file).touch()
    echo = 'printf "apiVersion: v1\\nkind: Pod\\nmetadata: {name: %s-$1-$2}\\n"'
    tool(tmp_path, "helm", echo % "helm", monkeypatch)
    tool(tmp_path, "kubectl", (echo % "kubectl").replace("-$2", ""), monkeypatch)
    assert await names(chart, kustomization) == ["helm-template-shop", "kubectl-kustomize"]
    tool(tmp_path, "helm", "echo no such value >&2; exit 3", monkeypatch)
    with pytest.raises(ManifestError, match="no such value"):
        await names(chart)
