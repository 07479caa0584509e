"""`konverge store`: the state of an API server (docs/storage.md), and the versions of what is stored in any cluster."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from konverge.cli.arguments import add_cluster, add_output, cluster_config, command
from konverge.cli.exit import FAILED, CommandFailed, UsageError

if TYPE_CHECKING:
    from konverge.apiserver.storage.salvage import Report

_SHOWN = 100
"""Names of lost objects that are listed as text; JSON has all of them."""


def add(commands: Any) -> None:
    about = "check, back up, restore or salvage the state of an API server"
    parser = command(
        commands,
        "store",
        about,
        "konverge store backup --kubeconfig admin.kubeconfig --to monday.backup",
        "konverge store restore monday.backup --to state",
        "konverge store check state",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add_check(actions)
    _add_backup(actions)
    _add_restore(actions)
    _add_salvage(actions)
    _add_migrate(actions)


def _add_check(actions: Any) -> None:
    about = "read all of a state and compare its checksums; exit status 1 if it is damaged. Nothing is changed"
    parser = command(actions, "check", about, "konverge store check state", "konverge store check state --output json")
    parser.add_argument("folder", type=Path, metavar="DATA_DIR", help="a data folder that no server uses")
    add_output(parser, "text", "json")
    parser.set_defaults(run=check)


def _add_backup(actions: Any) -> None:
    about = "write all objects to one file: of a server that runs, or of a data folder that no server uses"
    parser = command(
        actions,
        "backup",
        about,
        "konverge store backup --kubeconfig admin.kubeconfig --to monday.backup",
        "konverge store backup state --to monday.backup",
    )
    parser.add_argument("folder", type=Path, metavar="DATA_DIR", nargs="?", help="a data folder that no server uses")
    add_cluster(parser)
    parser.add_argument("--to", type=Path, required=True, metavar="FILE", help="the new file; it must not exist yet")
    parser.set_defaults(run=backup)


def _add_restore(actions: Any) -> None:
    about = "make the state of a data folder from a backup; revisions go on where no client has been"
    parser = command(
        actions,
        "restore",
        about,
        "konverge store restore monday.backup --to state",
        "konverge store restore monday.backup --to state --force",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the backup")
    parser.add_argument("--to", type=Path, required=True, metavar="DATA_DIR", help="a data folder that no server uses")
    parser.add_argument("--force", action="store_true", help="move a state that is there aside, into a folder there")
    parser.set_defaults(run=restore)


def _add_salvage(actions: Any) -> None:
    about = "make a new state of everything that is intact in a damaged one, and list what is lost"
    parser = command(actions, "salvage", about, "konverge store salvage state --to saved --output json")
    parser.add_argument("folder", type=Path, metavar="DATA_DIR", help="the damaged data folder; it is only read")
    parser.add_argument("--to", type=Path, required=True, metavar="NEW_DIR", help="the data folder to make")
    add_output(parser, "text", "json")
    parser.set_defaults(run=salvage)


def _add_migrate(actions: Any) -> None:
    about = "store all objects of custom resources in their stored version, on any cluster, and trim storedVersions"
    parser = command(actions, "migrate", about, "konverge store migrate webapps.apps.example.com")
    parser.add_argument("definitions", nargs="+", metavar="DEFINITION", help="as in `kubectl get crds`")
    add_cluster(parser)
    parser.set_defaults(run=migrate)


def check(arguments: argparse.Namespace) -> int:
    from konverge.apiserver.storage.database import Damaged
    from konverge.apiserver.storage.folder import DATABASE, FolderInUse, unused
    from konverge.apiserver.storage.integrity import OldFormat, existing_state

    folder: Path = arguments.folder
    try:
        with unused(folder):
            seal = existing_state(folder / DATABASE).seal
    except FolderInUse as error:
        hint = "a server checked the state when it started, and a backup of it (`konverge store backup`) is checked too"
        raise UsageError(f"{error}; {hint}") from error
    except OldFormat:
        raise CommandFailed(f"{folder} has no checksums: a server of this version adds them when it starts") from None
    except Damaged as error:
        _print(arguments, {"ok": False, "problem": error.problem}, f"damaged: {error}")
        return FAILED
    facts = {"ok": True, "objects": seal.count, "revision": seal.revision, "compacted": seal.compacted}
    _print(arguments, facts, f"ok: {seal.count} objects at revision {seal.revision}")
    return 0


def backup(arguments: argparse.Namespace) -> int:
    import asyncio

    from konverge.apiserver.storage.backup import check_backup

    target: Path = arguments.to
    if arguments.folder is not None and (arguments.kubeconfig or arguments.context):
        raise UsageError("give a data folder or a kubeconfig, not both")
    if target.exists():
        raise UsageError(f"--to: {target} exists; give the name of a new file")
    if arguments.folder is not None:
        _back_up_folder(arguments.folder, target)
    else:
        asyncio.run(_back_up_server(arguments, target))
    head, end = check_backup(target)
    print(f"{target}: {end.count} objects at revision {head.revision}")
    return 0


def _back_up_folder(folder: Path, target: Path) -> None:
    from konverge.apiserver.storage.backup import encoded, new_backup
    from konverge.apiserver.storage.folder import DATABASE, FolderInUse, unused
    from konverge.apiserver.storage.integrity import OldFormat, existing_state

    try:
        with unused(folder):
            state = existing_state(folder / DATABASE)
    except FolderInUse as error:
        raise UsageError(f"{error}; for a backup of a server that runs, give --kubeconfig") from error
    except OldFormat:
        raise CommandFailed(f"{folder} has no checksums: a server of this version adds them when it starts") from None
    with new_backup(target) as file:
        file.writelines(encoded(state.seal.revision, state.rows))


async def _back_up_server(arguments: argparse.Namespace, target: Path) -> None:
    from konverge.apiserver.http.routes import BACKUP
    from konverge.apiserver.storage.backup import new_backup
    from konverge.client import Client, NotFound
    from konverge.client.call import Call

    async with Client.connect(cluster_config(arguments)) as client:
        try:
            stream = await client.caller.stream(Call("get", None, path=BACKUP, timeout=None))
        except NotFound as error:
            raise CommandFailed("the server is none of Konverge, or an older one: it has no backups") from error
        try:
            with new_backup(target) as file:
                async for piece in stream:
                    file.write(piece)
        finally:
            await stream.aclose()


def restore(arguments: argparse.Namespace) -> int:
    from konverge.apiserver.storage.restore import restore as restore_to

    head, seal, aside = restore_to(arguments.file, arguments.to, replace=arguments.force)
    print(f"{arguments.to}: {seal.count} objects as at revision {head.revision}; revisions go on at {seal.revision}")
    if aside is not None:
        print(f"the state that was there is in {aside}")
    return 0


def salvage(arguments: argparse.Namespace) -> int:
    from konverge.apiserver.storage.folder import unused
    from konverge.apiserver.storage.salvage import salvage as salvage_to

    with unused(arguments.folder):
        report = salvage_to(arguments.folder, arguments.to)
    import msgspec

    _print(arguments, msgspec.to_builtins(report), "\n".join(_lines(report, arguments.to)))
    return 0


def _lines(report: Report, target: Path) -> list[str]:
    lines = [f"{target}: {report.saved} objects saved; revisions go on at {report.begins}"]
    if report.complete:
        return [*lines, "nothing that was acknowledged is lost"]
    if not report.witnessed:
        lines.append("the witness is gone: what was written last may be lost without a trace")
    if report.reached < report.revision:
        lines.append(f"all that was written from revision {report.reached + 1} to {report.revision} is lost")
    names = [f"lost: {_shown(*where)}" for where in report.lost]
    names += [f"older than it was: {_shown(table, key)}, revision {number}" for table, key, number in report.older]
    lines += names[:_SHOWN]
    if len(names) > _SHOWN:
        lines.append(f"and {len(names) - _SHOWN} more; --output json lists them")
    if report.unnamed:
        lines.append(f"lost with their names: {report.unnamed}")
    return lines


def _shown(table: str, key: str) -> str:
    group, _, plural = table.rpartition("/")
    return f"{plural}.{group} {key}" if group else f"{plural} {key}"


def _print(arguments: argparse.Namespace, facts: dict[str, Any], text: str) -> None:
    print(json.dumps(facts) if arguments.output == "json" else text)


def migrate(arguments: argparse.Namespace) -> int:
    import asyncio

    asyncio.run(_migrate(arguments))
    return 0


async def _migrate(arguments: argparse.Namespace) -> None:
    from konverge.client import Client, NotFound
    from konverge.runtime.webhooks.stored_versions import migrate_stored_versions

    async with Client.connect(cluster_config(arguments)) as client:
        for name in arguments.definitions:
            try:
                count = await migrate_stored_versions(client, name)
            except NotFound as error:
                if error.kind_missing:
                    raise  # the definition is there
                raise CommandFailed(f"there is no definition {name}: `kubectl get crds` lists them") from None
            print(f"{name}: {count} objects are stored in the stored version" if count else f"{name}: nothing to do")
