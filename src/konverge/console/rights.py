"""What the cluster lets a caller do."""

from __future__ import annotations

from typing import Any

from konverge.client import Client
from konverge.client.call import JSON, Call
from konverge.explain.reading import mapping
from konverge.objects.codec import from_json, to_json

_PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


async def may(client: Client, **attributes: dict[str, str]) -> bool:
    """Whether the caller may do this: `resourceAttributes={…}` or `nonResourceAttributes={…}`."""
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": attributes}
    answer = await client.caller.call(Call("create", None, path=_PATH, body=to_json(review), content_type=JSON))
    return mapping(from_json(dict[str, Any], answer.body), "status").get("allowed") is True
