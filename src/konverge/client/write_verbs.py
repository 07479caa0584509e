"""The verbs that write.

**Why there is no update of a typed object.** A class knows the fields of one version of the API. Read an object with
it, and what the class does not know is gone; PUT it back, and it is gone from the stored object. So `update` takes
dicts, which lose nothing. For typed objects there are `apply` (the fields that you want to own), `patch` (say what to
change; `merge_between` makes the patch), and `replace`, which is the PUT for those who know that nothing can be lost,
such as the writer of a kind that is all its own.
"""

from __future__ import annotations

from typing import Any, Unpack, overload

import msgspec

from konverge.client.binding import Binding, K, Listing, Obj, known
from konverge.client.call import Call
from konverge.client.errors import UNREADABLE, MalformedAnswer
from konverge.client.options import (
    ApplyOptions,
    DeleteCollectionOptions,
    DeleteOptions,
    UpdateOptions,
    WriteOptions,
    delete_body,
)
from konverge.client.patches import ApplyPatch, Patch
from konverge.client.verbs import Verbs, make_call, placed
from konverge.objects.codec import to_json
from konverge.objects.resource import Resource


class _Head(msgspec.Struct):
    kind: str = ""


_read_head = msgspec.json.Decoder(_Head).decode


class Writing(Verbs):
    """The writing half of `Client`."""

    @overload
    async def create(self, obj: K, namespace: str = "", **options: Unpack[WriteOptions]) -> K: ...
    @overload
    async def create(
        self, obj: Obj, namespace: str = "", *, resource: Resource | str | None = None, **options: Unpack[WriteOptions]
    ) -> Obj: ...
    async def create(
        self, obj: Any, namespace: str = "", *, resource: Resource | str | None = None, **options: Unpack[WriteOptions]
    ) -> Any:
        """Create an object; returns it as stored. Raises `AlreadyExists`, `Invalid`, `Forbidden`, …

        await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="shop"), data={"k": "v"}))
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
        """
        binding = await self._bind_object(obj, resource)
        space, _ = placed(obj, namespace)
        call = make_call("create", binding.resource, space, "", options, body=to_json(obj))
        return binding.decode((await self.caller.call(call)).body)

    async def update(
        self, obj: Obj, namespace: str = "", *, resource: Resource | str | None = None, **options: Unpack[UpdateOptions]
    ) -> Obj:
        """Replace a dict that was read before. Raises `Conflict` when it has changed since.

        web = await client.get("deploy", "web", namespace="shop")
        web["spec"]["replicas"] = 3
        await client.update(web)
        """
        if not isinstance(obj, dict):
            raise TypeError(
                f"update() of a {type(obj).__name__} would drop the fields that the class does not know: use apply(), "
                "patch(…, merge_between(before, after)), a dict, or replace() when that is what you want"
            )
        stored: Obj = await self._put(obj, namespace, resource, options)
        return stored

    async def replace(self, obj: K, namespace: str = "", **options: Unpack[UpdateOptions]) -> K:
        """PUT a typed object: whatever its class does not know is dropped on the server.

        Right for kinds that are wholly one's own, and for objects made from scratch. Else prefer `apply` and `patch`.
        """
        stored: K = await self._put(obj, namespace, None, options)
        return stored

    async def _put(self, obj: Any, namespace: str, resource: Resource | str | None, options: UpdateOptions) -> Any:
        binding = await self._bind_object(obj, resource)
        space, name = placed(obj, namespace)
        subresource = options.pop("subresource", "")
        call = make_call("update", binding.resource, space, name, options, subresource=subresource, body=to_json(obj))
        return binding.decode((await self.caller.call(call)).body)

    @overload
    async def patch(
        self, kind: type[K], name: str, patch: Patch, namespace: str = "", **options: Unpack[ApplyOptions]
    ) -> K: ...
    @overload
    async def patch(
        self, kind: Resource | str, name: str, patch: Patch, namespace: str = "", **options: Unpack[ApplyOptions]
    ) -> Obj: ...
    async def patch(
        self, kind: Any, name: str, patch: Patch, namespace: str = "", **options: Unpack[ApplyOptions]
    ) -> Any:
        """Change a part of an object; see `konverge.client.patches` for the ways to say which.

        await client.patch(Deployment, "web", MergePatch({"spec": {"replicas": 3}}), namespace="shop")
        await client.patch(Pod, "web-0", MergePatch({"status": …}), namespace="shop", subresource="status")
        """
        binding = known(kind) or await self._bind(kind)
        call = _patch_call(binding, namespace, name, patch, options)
        return binding.decode((await self.caller.call(call)).body)

    async def send_patch(
        self, kind: Any, name: str, patch: Patch, namespace: str = "", **options: Unpack[ApplyOptions]
    ) -> bytes:
        """Like `patch`, for those who read little or nothing of the answer: the object as JSON, not decoded."""
        binding = known(kind) or await self._bind(kind)
        call = _patch_call(binding, namespace, name, patch, options)
        return (await self.caller.call(call)).body

    @overload
    async def apply(self, obj: K, namespace: str = "", **options: Unpack[ApplyOptions]) -> K: ...
    @overload
    async def apply(
        self, obj: Obj, namespace: str = "", *, resource: Resource | str | None = None, **options: Unpack[ApplyOptions]
    ) -> Obj: ...
    async def apply(
        self, obj: Any, namespace: str = "", *, resource: Resource | str | None = None, **options: Unpack[ApplyOptions]
    ) -> Any:
        """Server-side apply: own exactly the fields that are in `obj`, creating the object where there is none.

        Needs a field manager: `field_manager=…`, or once and for all `FieldOwner(client, "my-operator")`. Raises
        `Conflict`, with a cause per field, when another manager owns a field and `force` is not set.

            await client.apply(deployment, field_manager="shop-operator")
        """
        binding = await self._bind_object(obj, resource)
        space, name = placed(obj, namespace)
        call = _patch_call(binding, space, name, ApplyPatch(obj), options)
        return binding.decode((await self.caller.call(call)).body)

    @overload
    async def delete(
        self, kind: type[K], name: str, namespace: str = "", **options: Unpack[DeleteOptions]
    ) -> K | None: ...
    @overload
    async def delete(
        self, kind: Resource | str, name: str, namespace: str = "", **options: Unpack[DeleteOptions]
    ) -> Obj | None: ...
    async def delete(self, kind: Any, name: str, namespace: str = "", **options: Unpack[DeleteOptions]) -> Any:
        """Delete one object. Returns it when the server sends it along (it may live on for its grace period or its
        finalizers), else None. Raises `NotFound`; `Conflict` when `uid` or `if_version` no longer hold.

            await client.delete(Pod, "web-0", namespace="shop", grace_period=0)
            await client.delete(Deployment, "web", namespace="shop", propagation="Foreground", uid=web.metadata.uid)
        """
        binding = known(kind) or await self._bind(kind)
        body = to_json(delete_body(options))
        call = make_call("delete", binding.resource, namespace, name, options, body=body)
        answer = (await self.caller.call(call)).body
        return None if _is_status(answer) else binding.decode(answer)

    @overload
    async def delete_collection(
        self, kind: type[K], namespace: str = "", **options: Unpack[DeleteCollectionOptions]
    ) -> Listing[K]: ...
    @overload
    async def delete_collection(
        self, kind: Resource | str, namespace: str = "", **options: Unpack[DeleteCollectionOptions]
    ) -> Listing[Obj]: ...
    async def delete_collection(
        self, kind: Any, namespace: str = "", **options: Unpack[DeleteCollectionOptions]
    ) -> Listing[Any]:
        """Delete everything that the selectors choose, in one namespace. Returns what the server says it deleted.

        await client.delete_collection(Pod, "shop", label_selector="job-name=import")
        """
        binding = known(kind) or await self._bind(kind)
        body = to_json(delete_body(options))
        call = make_call("deletecollection", binding.resource, namespace, "", options, body=body)
        answer = (await self.caller.call(call)).body
        return Listing() if _is_status(answer) else binding.decode_list(answer)


def _patch_call(binding: Binding[Any], namespace: str, name: str, patch: Patch, options: ApplyOptions) -> Call:
    subresource, body, content_type = options.pop("subresource", ""), patch.encode(), patch.content_type
    return make_call(
        "patch",
        binding.resource,
        namespace,
        name,
        options,
        subresource=subresource,
        body=body,
        content_type=content_type,
    )


def _is_status(answer: bytes) -> bool:
    """Whether a deletion was answered with a Status that says Success; the other possibility is the object."""
    try:
        return _read_head(answer).kind == "Status"
    except UNREADABLE as error:
        raise MalformedAnswer(f"the answer to the deletion is not JSON: {error}") from error
