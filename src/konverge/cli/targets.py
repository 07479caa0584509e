"""What `why`, `logs` and `events` are about: `KIND NAME`, `KIND/NAME`, a kind, a category, or everything."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NamedTuple

from konverge.cli.arguments import add_cluster, cluster_config, namespace
from konverge.cli.exit import USAGE, CommandFailed, UsageError

if TYPE_CHECKING:
    from konverge.client import Client, Config
    from konverge.explain import Ref


class CouldNotAsk(CommandFailed):
    """There is no answer: no connection, no such kind, no such object."""

    code = USAGE


class Target(NamedTuple):
    """What the user named; empty parts were left out."""

    kind: str
    name: str


def add_target(parser: argparse.ArgumentParser, *, optional: bool) -> None:
    about = "KIND NAME or KIND/NAME; kinds as kubectl knows them: deploy, deployments, Deployment.apps"
    parser.add_argument("target", nargs="*" if optional else "+", metavar="KIND/NAME", help=about)
    parser.add_argument("-n", "--namespace", type=namespace, help="namespace (the context's by default)")
    parser.add_argument("-A", "--all-namespaces", action="store_true", help="in all namespaces")
    add_cluster(parser)


def parse_target(words: list[str]) -> Target:
    """
    >>> parse_target(["deploy", "web"]), parse_target(["deploy/web"]), parse_target(["pods"])
    (Target(kind='deploy', name='web'), Target(kind='deploy', name='web'), Target(kind='pods', name=''))
    """
    if not words:
        return Target("", "")
    kind, slash, name = words[0].partition("/")
    if slash and len(words) == 1 and kind and name and "/" not in name:
        return Target(kind, name)
    if slash or len(words) > 2 or not all(words):
        raise UsageError(f"{' '.join(words)!r} names no object: give KIND NAME or KIND/NAME, such as deploy/web")
    return Target(kind, words[1] if len(words) == 2 else "")


def where(arguments: argparse.Namespace, config: Config) -> str:
    """The namespace that is asked about; empty for all."""
    if arguments.all_namespaces and arguments.namespace:
        raise UsageError("give -n or -A, not both")
    return "" if arguments.all_namespaces else arguments.namespace or config.namespace or "default"


def configured(arguments: argparse.Namespace) -> Config:
    """Where the cluster is. Raises CouldNotAsk."""
    from konverge.client import ClientError

    try:
        return cluster_config(arguments)
    except ClientError as error:
        raise CouldNotAsk(str(error)) from error


async def resolve(client: Client, target: Target, space: str) -> Ref:
    """The object that a target names, by discovery. Raises CouldNotAsk with what was likely meant."""
    from konverge.client import ClientError, UnknownKind
    from konverge.explain import Ref

    try:
        resource = await client.mapper.find(target.kind)
    except UnknownKind as error:
        raise CouldNotAsk(await _unknown_kind(client, target.kind, str(error))) from error
    except ClientError as error:
        raise CouldNotAsk(str(error)) from error
    if resource.namespaced and not space:
        raise UsageError(f"{resource.kind} objects are in a namespace: give -n instead of -A")
    return Ref(resource.kind, target.name, space if resource.namespaced else "", resource.group)


async def kinds_named(client: Client, text: str) -> list[tuple[str, str]]:
    """The kinds (group and kind) that a name or a category stands for. Raises CouldNotAsk."""
    from konverge.client import UnknownKind

    in_category = [served.resource for served in await client.mapper.all() if text in served.categories]
    if in_category:
        return [(resource.group, resource.kind) for resource in in_category]
    try:
        resource = await client.mapper.find(text)
    except UnknownKind as error:
        raise CouldNotAsk(await _unknown_kind(client, text, str(error))) from error
    return [(resource.group, resource.kind)]


async def _unknown_kind(client: Client, text: str, message: str) -> str:
    names = {name for served in await client.mapper.all() for name in served.names()}
    return message + _did_you_mean(text.lower(), names)


async def no_such_object(client: Client, ref: Ref) -> str:
    """What to say of an object that does not exist: whether another was meant."""
    from konverge.client import ClientError
    from konverge.explain.gather import Gatherer

    try:
        resource = await Gatherer(client).resource_of(ref)
        _, raw = await client.list_bytes(resource, ref.namespace, metadata_only=True, limit=500)
    except ClientError:
        raw = []
    place = f" in namespace {ref.namespace}" if ref.namespace else ""
    return f"{ref} does not exist{place}" + _did_you_mean(ref.name, {_name(item) for item in raw})


def _name(item: bytes) -> str:
    import json

    return str(json.loads(item)["metadata"]["name"])


def _did_you_mean(text: str, names: set[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(text, sorted(names), 3)
    return f"; did you mean {' or '.join(close)}?" if close else ""
