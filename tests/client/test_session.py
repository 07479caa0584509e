"""One call: headers, errors, retries, renewal, warnings, lanes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge import clock
from konverge.client import (
    ApiStatusError,
    ConnectionLost,
    Credential,
    Impersonation,
    InternalError,
    NotConnected,
    NotFound,
    RetryPolicy,
    ServerWarning,
    Static,
    TimedOut,
    TokenBucket,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    parse_warnings,
)
from konverge.client.call import Call
from konverge.client.credentials import Renewing
from konverge.client.errors import ClientError, error_from_answer
from konverge.client.session import Session
from konverge.objects.kinds.coordination_v1 import Lease
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.objects.meta import ObjectMeta
from konverge.wire import ConnectFailed, Headers, Request, Response, TotalTimeout
from konverge.wire import ConnectionLost as WireLost
from tests.client.scripted import Script, config_map, ok, refused, streamed

PATIENT = RetryPolicy()


def new() -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name="a", namespace="shop"))


async def test_headers_of_a_request() -> None:
    server = Script(ok(config_map()))
    client = server.client(impersonate=Impersonation(user="jane"), user_agent="shop/1")
    await client.create(new())
    headers = server.requests[0].headers
    assert headers.get("user-agent") == "shop/1"
    assert headers.get("impersonate-user") == "jane"
    assert headers.get("content-type") == headers.get("accept") == "application/json"


async def test_acting_as_somebody_with_a_name_in_any_script() -> None:
    server = Script(ok(config_map()))
    acting = Impersonation(user="\u7528\u6237", extra={"Example.com/Project%": ["a b", "c"]})
    await server.client(impersonate=acting).create(new())
    sent = dict(server.requests[0].headers.raw)
    assert sent[b"impersonate-user"].decode() == "\u7528\u6237"
    assert server.requests[0].headers.get_all("impersonate-extra-example.com%2fproject%25") == ["a b", "c"]


class Tokens(Renewing):
    def __init__(self) -> None:
        super().__init__()
        self.fetched = 0

    async def _fetch(self) -> Credential:
        self.fetched += 1
        return Credential(f"Bearer {self.fetched}")


async def test_a_401_renews_once_for_all_and_each_is_repeated() -> None:
    def only_two(request: Request) -> Response:
        fits = request.headers.get("authorization") == "Bearer 2"
        return ok(config_map()) if fits else refused(401, "Unauthorized")

    tokens = Tokens()
    client = Script(only_two).client(credentials=tokens)
    await asyncio.gather(*(client.get(ConfigMap, "a", namespace="shop") for _ in range(5)))
    assert tokens.fetched == 2


async def test_a_second_401_is_final() -> None:
    server, tokens = Script(refused(401, "Unauthorized")), Tokens()
    with pytest.raises(Unauthorized):
        await server.client(credentials=tokens).get(ConfigMap, "a", namespace="shop")
    assert (len(server.requests), tokens.fetched) == (2, 2)


async def test_what_cannot_be_renewed_is_refused_once() -> None:
    server = Script(refused(401, "Unauthorized"))
    with pytest.raises(Unauthorized):
        await server.client(credentials=Static.bearer("t")).get(ConfigMap, "a", namespace="shop")
    assert [request.headers.get("authorization") for request in server.requests] == ["Bearer t"]


async def test_each_request_has_the_headers_of_its_own_call_and_of_the_credential_of_the_moment() -> None:
    server, tokens = Script(ok(config_map())), Tokens()
    client = server.client(credentials=tokens)
    for _ in range(2):
        await client.create(new())
        await client.get(ConfigMap, "a", namespace="shop")
        await client.log("p", "shop")
        await client.caller.call(Call("get", None, path="/version", headers=(("x-once", "1"),)))
        await tokens.renew(tokens.current())
    sent = [
        tuple(request.headers.get(name) for name in ("authorization", "accept", "content-type", "x-once"))
        for request in server.requests
    ]
    json = "application/json"
    assert sent == [
        (f"Bearer {number}", *rest)
        for number in (1, 2)
        for rest in ((json, json, ""), (json, "", ""), ("*/*", "", ""), (json, "", "1"))
    ]


async def test_an_anonymous_client_sends_no_authorization() -> None:
    server = Script(ok(config_map()))
    await server.client().get(ConfigMap, "a", namespace="shop")
    assert server.requests[0].headers.get_all("authorization") == []


async def test_a_call_is_given_up_after_its_time() -> None:
    server = Script(ok(config_map()))
    client = server.client()
    await client.get(ConfigMap, "a", namespace="shop")
    await client.get(ConfigMap, "a", namespace="shop", timeout=3)
    await client.create(new(), timeout=None)
    assert [request.timeout for request in server.requests] == [75, 3, None]


async def test_only_a_path_that_is_not_served_makes_discovery_look_again() -> None:
    looked: list[str] = []
    absent = refused(404, "NotFound", details={"kind": "configmaps", "name": "a"})
    client = Script(absent, refused(404, "NotFound")).client()
    assert isinstance(client.caller, Session)
    client.caller.on_missing_kind = lambda: looked.append("again")
    for expected in ([], ["again"]):
        with pytest.raises(NotFound):
            await client.get(ConfigMap, "a", namespace="shop")
        assert looked == expected


@pytest.mark.virtual
async def test_every_try_counts_for_the_rate_limit() -> None:
    server = Script(refused(429, retry_after="0"), refused(429, retry_after="0"), ok(config_map()))
    start = asyncio.get_running_loop().time()
    await server.client(retry=PATIENT, rate_limit=TokenBucket(qps=1, burst=1)).create(new())
    assert (asyncio.get_running_loop().time() - start, len(server.requests)) == (pytest.approx(2), 3)


@pytest.mark.virtual
@pytest.mark.spec("R-102")
async def test_a_call_may_be_refused_directly_before_each_sending() -> None:
    """After the waits for the rate limit, for a credential, and for what the server asked for."""
    server, tokens = Script(refused(401, "Unauthorized"), refused(429, retry_after="1"), ok(config_map())), Tokens()
    client = server.client(retry=PATIENT, credentials=tokens, rate_limit=TokenBucket(qps=1 / 5, burst=1))
    asked: list[tuple[int, int, int]] = []
    start = asyncio.get_running_loop().time()

    def ask() -> None:
        asked.append((len(server.requests), tokens.fetched, round(asyncio.get_running_loop().time() - start)))

    call = Call("get", ConfigMap.resource, "shop", "a")
    call.ask_before_send(ask)
    await client.caller.call(call)
    assert asked == [(0, 1, 0), (1, 2, 5), (2, 2, 10)]

    def refuse() -> None:
        ask()
        raise LookupError("no more")

    call.ask_before_send(refuse)
    with pytest.raises(LookupError, match="no more"):
        await client.caller.call(call)
    assert [sent for sent, _, _ in asked[3:]] == [3, 3], "both are asked, and nothing is sent"
    assert len(server.requests) == 3
    with pytest.raises(LookupError, match="no more"):
        await client.caller.stream(call)


@pytest.mark.parametrize("status", [300, 302, 307])
async def test_a_redirection_is_not_followed(status: int) -> None:
    with pytest.raises(ApiStatusError) as error:
        await Script(ok(b"elsewhere", status)).client().get(ConfigMap, "a", namespace="shop")
    assert (error.value.code, error.value.message) == (status, "elsewhere")


@pytest.mark.virtual
async def test_retry_after_is_obeyed_also_by_writes() -> None:
    server = Script(refused(429, "TooManyRequests", retry_after="3"), ok(config_map(), 201))
    start = asyncio.get_running_loop().time()
    await server.client(retry=PATIENT).create(new())
    assert len(server.requests) == 2
    assert 3 <= asyncio.get_running_loop().time() - start <= 3.3


@pytest.mark.virtual
async def test_writes_are_not_repeated_unless_asked_for() -> None:
    for answer, error in ((refused(500), InternalError), (refused(503), Unavailable), (refused(429), TooManyRequests)):
        server = Script(answer)
        with pytest.raises(error):
            await server.client(retry=PATIENT).create(new())
        assert len(server.requests) == 1


@pytest.mark.virtual
async def test_reads_are_repeated_within_the_count() -> None:
    server = Script(refused(503))
    with pytest.raises(Unavailable):
        await server.client(retry=RetryPolicy(retries=3)).get(ConfigMap, "a", namespace="shop")
    assert len(server.requests) == 4


@pytest.mark.virtual
async def test_a_wait_beyond_the_budget_is_not_begun() -> None:
    server = Script(refused(429, retry_after="60"))
    with pytest.raises(TooManyRequests) as error:
        await server.client(retry=PATIENT).get(ConfigMap, "a", namespace="shop")
    assert error.value.retry_after == 60
    assert len(server.requests) == 1


class Failing:
    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.sent = 0

    async def send(self, request: Request) -> Response:
        self.sent += 1
        if self.errors:
            raise self.errors.pop(0)
        return ok(config_map())

    async def stream(self, request: Request) -> Any:
        raise AssertionError("nothing is streamed here")


@pytest.mark.virtual
async def test_lost_connections() -> None:
    from konverge.client import Client

    reading = Failing(WireLost("gone"))
    await Client(reading).get(ConfigMap, "a", namespace="shop")
    assert reading.sent == 2
    writing = Failing(WireLost("gone"))
    with pytest.raises(ConnectionLost):
        await Client(writing).create(new())
    assert writing.sent == 1
    with pytest.raises(TimedOut):
        await Client(Failing(TotalTimeout("slow"))).get(ConfigMap, "a", namespace="shop")
    refusing = Client(Failing(ConnectFailed("refused")), server="https://k")
    with pytest.raises(NotConnected) as error:
        await refusing.list(ConfigMap, "shop", label_selector="a=b")
    assert str(error.value) == "GET /api/v1/namespaces/shop/configmaps at https://k: refused"
    starting = Failing(ConnectFailed("refused"), ConnectFailed("refused"))
    await Client(starting, retry=RetryPolicy(refused_for=5)).create(new())
    assert starting.sent == 3


@given(
    st.lists(st.tuples(st.sampled_from([429, 500, 503]), st.one_of(st.none(), st.floats(0, 40))), max_size=30),
    st.booleans(),
)
def test_no_call_waits_longer_or_tries_more_often_than_allowed(
    outcomes: list[tuple[int, float | None]], reads: bool
) -> None:
    attempts = PATIENT.begin(reads=reads)
    waits = []
    for code, retry_after in outcomes:
        error: ClientError = error_from_answer(code, b"", retry_after=retry_after)
        wait = attempts.delay(error)
        if wait is None:
            continue
        assert reads or retry_after is not None
        assert wait >= (retry_after or 0)
        waits.append(wait)
    assert len(waits) <= PATIENT.retries
    assert sum(waits) <= PATIENT.budget


async def test_warnings_reach_the_handler() -> None:
    heard: list[ServerWarning] = []
    server = Script(ok(config_map(), warning='299 - "old \\"thing\\"", 299 - "other"'))
    await server.client(on_warning=heard.append).get(ConfigMap, "a", namespace="shop")
    assert [warning.text for warning in heard] == ['old "thing"', "other"]


def test_a_warning_with_control_characters_ends_the_list() -> None:
    texts = [warning.text for warning in parse_warnings('299 - "a", 299 - "\u00e9\\"", 299 - "\x1b[31mred", 299 - "b"')]
    assert texts == ["a", '\u00e9"']


async def test_warnings_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    client = Script(ok(config_map(), warning='299 - "old"')).client()
    for _ in range(3):
        await client.get(ConfigMap, "a", namespace="shop")
    assert [record.getMessage() for record in caplog.records] == ["the API server warns: old"]


@pytest.mark.virtual
async def test_leases_have_a_lane_of_their_own_and_no_limit() -> None:
    from konverge.client import Client
    from konverge.wire import Direct

    ordinary, leases = Script(ok(config_map())), Script(ok({"metadata": {"name": "l"}}))
    client = Client(Direct(ordinary), lease_transport=Direct(leases), rate_limit=TokenBucket(qps=1, burst=1))
    loop = asyncio.get_running_loop()
    start = loop.time()
    for _ in range(5):
        await client.get(Lease, "l", namespace="shop")
    assert loop.time() == start
    for _ in range(3):
        await client.get(ConfigMap, "a", namespace="shop")
    assert loop.time() - start == pytest.approx(2)
    assert (len(leases.requests), len(ordinary.requests)) == (5, 3)


async def test_a_watch_of_leases_leaves_their_lane_free() -> None:
    from konverge.client import Client
    from konverge.wire import Direct

    event = b'{"type":"ADDED","object":{"metadata":{"name":"l"}}}\n'
    ordinary, leases = Script(streamed(event)), Script(ok({"metadata": {"name": "l"}}))
    client = Client(Direct(ordinary), lease_transport=Direct(leases))
    assert [event.type async for event in client.watch(Lease)] == ["ADDED"]
    assert (len(leases.requests), len(ordinary.requests)) == (0, 1)


@pytest.mark.virtual
@pytest.mark.parametrize(("after", "waited"), [(30, 30.0), (-30, 0.0)])
async def test_retry_after_may_be_a_date(after: int, waited: float) -> None:
    from email.utils import formatdate

    moment = formatdate(clock.now() + after, usegmt=True)
    server = Script(refused(503, "ServiceUnavailable", retry_after=moment), ok(config_map()))
    start = asyncio.get_running_loop().time()
    await server.client(retry=RetryPolicy(budget=60)).create(new())
    assert asyncio.get_running_loop().time() - start == pytest.approx(waited, abs=waited * 0.1 + 1)


@pytest.mark.parametrize("value", ["soon", "-1", "1.5", "Mon, 99 Foo 2026 00:00:00 GMT", "\u00b2"])
async def test_a_retry_after_that_means_nothing_asks_for_nothing(value: str) -> None:
    server = Script(refused(503, "ServiceUnavailable", retry_after=value))
    with pytest.raises(Unavailable):
        await server.client(retry=PATIENT).create(new())
    assert len(server.requests) == 1


async def test_a_page_of_a_proxy_is_an_error_too() -> None:
    page = Response(404, Headers(), b"404 page not found\n")
    with pytest.raises(NotFound, match="404 page not found") as error:
        await Script(page).client().get(ConfigMap, "a", namespace="shop")
    assert error.value.kind_missing
