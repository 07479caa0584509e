"""DELETE of a collection: each selected object is deleted as if alone.

Some at a time: with a journal they share a commit, and between them others get their turn.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from konverge.apiserver import status
from konverge.apiserver.http import listing, reads, respond
from konverge.apiserver.http.delete import read_options, remove
from konverge.apiserver.http.options import DeleteOptions, list_options
from konverge.apiserver.http.selection import select
from konverge.apiserver.registry import Served
from konverge.apiserver.storage import Record
from konverge.wire.message import Response

if TYPE_CHECKING:
    from konverge.apiserver.request.call import Call

_AT_ONCE = 64


async def delete_collection(call: Call) -> Response:
    served = call.resource
    respond.settle_form(call, custom=served.custom)
    asked = list_options(call.query, watch=False)
    namespace = call.info.namespace if served.resource.namespaced else ""
    selection = select(served, namespace, asked)
    options = read_options(call)
    store = call.server.store
    page = await listing.page(store, store.table(served.table), selection, asked)
    for start in range(0, len(page.records), _AT_ONCE):
        await _remove_some(call, served, page.records[start : start + _AT_ONCE], options)
    return await reads.plain_list(call, served, page.records, page.metadata(selection.scope))


async def _remove_some(call: Call, served: Served, records: list[Record], options: DeleteOptions) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_refusal(call, served, record.key, options)) for record in records]
    for task in tasks:
        if (refusal := task.result()) is not None:
            raise refusal


async def _refusal(call: Call, served: Served, key: str, options: DeleteOptions) -> status.ApiError | None:
    """Delete one object; why it was refused, if it was. Gone already is as good as deleted."""
    try:
        await remove(call, served, key, options)
    except status.ApiError as error:
        return None if error.code == 404 else error
    return None
