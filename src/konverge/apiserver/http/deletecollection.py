"""DELETE of a collection: each selected object is deleted as if alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from konverge.apiserver import status
from konverge.apiserver.http import pages, render
from konverge.apiserver.http.delete import read_options, remove
from konverge.apiserver.http.options import list_options
from konverge.apiserver.http.selection import select
from konverge.wire.message import Response

if TYPE_CHECKING:
    from konverge.apiserver.http.call import Call


async def delete_collection(call: Call) -> Response:
    served = call.resource
    call.negotiate(custom=served.custom)
    listing = list_options(call.query, watch=False)
    namespace = call.info.namespace if served.resource.namespaced else ""
    selection = select(served, namespace, listing)
    options = read_options(call)
    store = call.server.store
    page = await pages.page(store, store.table(served.table), selection, listing)
    for record in page.records:
        try:
            await remove(call, served, record.key, options)
        except status.ApiError as error:
            if error.code != 404:  # gone already is as good as deleted
                raise
    return call.answer_bytes(200, render.list_of(served, page.records, page.metadata(selection.scope)))
