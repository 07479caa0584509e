"""Names with generated parts, so that an object of one run is known in another.

`generateName`, template hashes and uids give names that no two runs share; random parts are recognised by their
alphabet (the API server's and the controllers' have no vowels) and folded to `*`. Ordinals of StatefulSets stay.
"""

from __future__ import annotations

import re

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_GENERATED = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}$")  # upstream: k8s.io/apimachinery/pkg/util/rand
_HASHED = re.compile(
    r"-(?=[a-z]*[0-9])(?=[0-9]*[a-z])[bcdfghjklmnpqrstvwxz2456789]{8,10}(?=-|$)"
)  # rand.SafeEncodeString
_DIGEST = re.compile(r"(?<=-)[0-9a-f]{10,}(?=-|$)")
_COUNTED = re.compile(r"(?<=-)[0-9]{7,}(?=-|$)")  # a time: CronJobs name their Jobs after one


def folded(name: str) -> str:
    """
    >>> folded("web-6d4cf56db6-x7k2p"), folded("rabbit-server-0"), folded("pvc-0f3b2a1c9d8e")
    ('web-*-*', 'rabbit-server-0', 'pvc-*')
    >>> folded("/persistentvolumes pvc-3f1c2b9a-7d60-4a4e-9a53-0d9f6f2f8f10")
    '/persistentvolumes pvc-*'
    """
    name = _UID.sub("*", name)
    name = _DIGEST.sub("*", name)
    name = _GENERATED.sub("-*", name)
    name = _HASHED.sub("-*", name)
    return _COUNTED.sub("*", name)
