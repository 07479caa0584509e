"""Names with generated parts, so that an object of one run is known in another.

`generateName` and template hashes give names that no two runs share; random parts are recognised by their alphabet (the
API server's and the controllers' have no vowels) and folded to `*`. Ordinals of StatefulSets stay.
"""

from __future__ import annotations

import re

_GENERATED = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}$")  # upstream: k8s.io/apimachinery/pkg/util/rand
_HASHED = re.compile(
    r"-(?=[a-z]*[0-9])(?=[0-9]*[a-z])[bcdfghjklmnpqrstvwxz2456789]{8,10}(?=-|$)"
)  # rand.SafeEncodeString
_DIGEST = re.compile(r"(?<=-)[0-9a-f]{10,}(?=-|$)")


def folded(name: str) -> str:
    """
    >>> folded("web-6d4cf56db6-x7k2p"), folded("rabbit-server-0"), folded("pvc-0f3b2a1c9d8e")
    ('web-*-*', 'rabbit-server-0', 'pvc-*')
    """
    name = _DIGEST.sub("*", name)
    name = _GENERATED.sub("-*", name)
    return _HASHED.sub("-*", name)
