"""The HTTP side of webhooks: what is refused, what is limited, and that nothing of an author's code ends the server."""

from __future__ import annotations

import asyncio

import pytest

from konverge.runtime.webhooks import BadReview, Webhook, Webhooks
from konverge.runtime.webhooks.server import (
    CONNECTIONS,
    CONVERSION_BODY,
    CONVERSION_CONNECTIONS,
    Reviews,
    server_limits,
)
from konverge.wire.limits import MIB, ServerLimits
from konverge.wire.message import Headers, Request, Response

pytestmark = pytest.mark.spec("R-67")

JSON = {"content-type": "application/json"}


class Recorded(Webhook):
    """Answers with what it was asked, or as the body says."""

    def __init__(self, path: str = "/review") -> None:
        self.path = path
        self.at_work = self.most = 0

    async def answer(self, review: bytes) -> bytes:
        self.at_work += 1
        self.most = max(self.most, self.at_work)
        try:
            match review:
                case b"slow":
                    await asyncio.sleep(1_000)
                case b"wait":
                    await asyncio.sleep(1)
                case b"bad":
                    raise BadReview("this is no review")
                case b"own timeout":
                    raise TimeoutError
                case b"broken":
                    raise RuntimeError("secret detail")
        finally:
            self.at_work -= 1
        return b'{"asked":"' + review + b'"}'


async def ask(reviews: Reviews, body: bytes, *, target: str = "/review", method: str = "POST") -> Response:
    return await reviews.handle(Request(method, target, Headers.of(JSON), body))


async def test_a_review_is_answered_at_its_path() -> None:
    reviews = Reviews(Webhooks().add(Recorded()).add(Recorded("/other")))
    response = await ask(reviews, b"x")
    assert (response.status, response.body) == (200, b'{"asked":"x"}')
    assert response.headers.get("content-type") == "application/json"
    assert (await ask(reviews, b"x", target="/other?timeout=5s")).status == 200
    assert (await ask(reviews, b"x", target="/another")).status == 404


async def test_what_is_no_review_is_refused() -> None:
    reviews = Reviews(Webhooks().add(Recorded()))
    assert (await ask(reviews, b"x", method="GET")).status == 405
    assert (await ask(reviews, b"")).status == 400
    assert (
        await reviews.handle(Request("POST", "/review", Headers.of({"content-type": "text/yaml"}), b"x"))
    ).status == 415
    typed = Headers.of({"content-type": "application/json; charset=utf-8"})
    assert (await reviews.handle(Request("POST", "/review", typed, b"x"))).status == 200
    bad = await ask(reviews, b"bad")
    assert (bad.status, bad.body) == (400, b"this is no review\n")


async def test_a_refusal_says_why_in_plain_text() -> None:
    reviews = Reviews(Webhooks().add(Recorded()))
    untyped = await reviews.handle(Request("POST", "/review", Headers.of({"accept": "application/json"}), b"x"))
    assert [
        (response.status, response.body, response.headers.get("content-type"))
        for response in (
            await ask(reviews, b"x", target="/another"),
            await ask(reviews, b"x", method="PUT"),
            untyped,
            await ask(reviews, b""),
            await ask(reviews, b"broken"),
        )
    ] == [
        (404, b"404 page not found\n", "text/plain; charset=utf-8"),
        (405, b"a review is sent by POST\n", "text/plain; charset=utf-8"),
        (415, b"a review is sent as application/json\n", "text/plain; charset=utf-8"),
        (400, b"the request has no body\n", "text/plain; charset=utf-8"),
        (500, b"the webhook failed; the log of the operator says why\n", "text/plain; charset=utf-8"),
    ]


class AtOnce(Recorded):
    """Says that it waits for nothing, which is not true of every body."""

    waits = False


@pytest.mark.virtual
async def test_a_webhook_that_waits_for_nothing_needs_no_place_among_those_at_work() -> None:
    webhook = AtOnce()
    reviews = Reviews(Webhooks(max_in_flight=1).add(webhook))
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(ask(reviews, b"wait"))
        await asyncio.sleep(0)
        assert reviews.in_flight == 1
        response = await ask(reviews, b"x")
        assert (response.status, response.body) == (200, b'{"asked":"x"}')
        assert response.headers.get("content-type") == "application/json"
        assert not waiting.done()
        late = await ask(reviews, b"slow", target="/review?timeout=500ms")
        assert (late.status, late.body) == (504, b"the webhook did not answer within 0.5 s\n")
        bad = await ask(reviews, b"bad")
        assert (bad.status, bad.body) == (400, b"this is no review\n")
    assert (waiting.result().status, waiting.result().body) == (200, b'{"asked":"wait"}')
    assert (reviews.in_flight, webhook.at_work) == (0, 0)
    assert reviews.answered == {("/review", 200): 2, ("/review", 504): 1, ("/review", 400): 1}


@pytest.mark.parametrize("body", [b"broken", b"own timeout"])
async def test_an_exception_is_a_500_that_says_nothing_of_the_code(
    body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    reviews = Reviews(Webhooks().add(Recorded()))
    response = await ask(reviews, body)
    assert response.status == 500
    assert b"secret" not in response.body
    assert b"Traceback" not in response.body
    assert "Traceback" in caplog.text
    assert (await ask(reviews, b"x")).status == 200


@pytest.mark.virtual
@pytest.mark.parametrize(
    ("target", "seconds"),
    [
        ("/review?timeout=2s", 2),
        ("/review?dryRun=All&timeout=1500ms", 1.5),
        ("/review", 30),
        ("/review?", 30),
        ("/review?other=2s", 30),
        ("/review?timeout=30s", 30),
        ("/review?timeout=9h", 30),
        ("/review?timeout=0s", 30),
        ("/review?timeout=-2s", 30),
        ("/review?timeout=soon", 30),
    ],
)
async def test_a_slow_webhook_ends_when_its_caller_no_longer_waits(target: str, seconds: float) -> None:
    webhook = Recorded()
    reviews = Reviews(Webhooks().add(webhook))
    loop = asyncio.get_running_loop()
    began = loop.time()
    response = await ask(reviews, b"slow", target=target)
    assert (response.status, loop.time() - began) == (504, seconds)
    assert webhook.at_work == 0
    assert reviews.in_flight == 0


@pytest.mark.virtual
async def test_so_many_reviews_are_at_work_and_the_others_wait() -> None:
    webhook = Recorded()
    reviews = Reviews(Webhooks(max_in_flight=3).add(webhook))
    responses = await asyncio.gather(*(ask(reviews, b"wait") for _ in range(8)))
    assert [response.status for response in responses] == [200] * 8
    assert webhook.most == 3
    late = await asyncio.gather(*(ask(reviews, b"slow", target="/review?timeout=2s") for _ in range(4)))
    assert [response.status for response in late] == [504] * 4


def test_what_strangers_can_make_it_hold_is_limited() -> None:
    conversion = Recorded()
    conversion.definition = "pools.example.com"
    limits = server_limits(Webhooks().add(conversion))
    assert limits.body >= 20 * MIB, "a page of a list"
    assert limits.body * limits.connections <= 4096 * MIB
    assert server_limits(Webhooks(max_body=64 * MIB).add(conversion)).body == 64 * MIB, "as the author says"
    assert server_limits(Webhooks().add(conversion)) == ServerLimits(
        body=CONVERSION_BODY, connections=CONVERSION_CONNECTIONS
    )
    plain = server_limits(Webhooks(max_body=3 * MIB).add(Recorded()))
    assert plain == ServerLimits(body=3 * MIB, connections=CONNECTIONS)
    assert plain.connections >= Webhooks().max_in_flight, "or reviews would be refused instead of waiting"


def test_paths_are_unique_and_absolute() -> None:
    webhooks = Webhooks().add(Recorded())
    with pytest.raises(ValueError, match="already a webhook at /review"):
        webhooks.add(Recorded())
    with pytest.raises(ValueError, match="begins with a slash"):
        webhooks.add(Recorded("review"))
