"""The status of a pod."""

from __future__ import annotations

import pytest

from tests.apiserver.kinds.core.pod.pods import pod, stored_pod


@pytest.mark.spec("S-03", "S-09")
def test_an_ended_container_stays_ended_unless_its_policy_says_otherwise() -> None:
    for policy, refused in (("Never", True), ("Always", False), ("OnFailure", False)):
        world = stored_pod(pod(restartPolicy=policy))
        ended = {"status": {"containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": 1}}}]}}
        assert not world.patch("", "Pod", "p", ended, subresource="status").errors
        again = {"status": {"containerStatuses": [{"name": "c", "state": {"running": {}}}]}}
        assert bool(world.patch("", "Pod", "p", again, subresource="status").errors) == refused
