"""Cron schedules, with the messages of the library that the real server uses."""

from __future__ import annotations

import pytest

from konverge.apiserver.kinds.batch.schedule import schedule_error

GOOD = ("* * * * *", "*/5 0-6 1,15 jan-mar mon", "@hourly", "@every 1h30m", "0 0 ? * SUN", "TZ=UTC 0 0 * * *")
BAD = {
    "": "empty spec string",
    " ": "expected exactly 5 fields, found 0: []",
    "x": "expected exactly 5 fields, found 1: [x]",
    "60 * * * *": "end of range (60) above maximum (59): 60",
    "* * 0 * *": "beginning of range (0) below minimum (1): 0",
    "5-1 * * * *": "beginning of range (5) beyond end of range (1): 5-1",
    "*/0 * * * *": "step of range should be a positive number: */0",
    "1-2-3 * * * *": "too many hyphens: 1-2-3",
    "1/2/3 * * * *": "too many slashes: 1/2/3",
    "a * * * *": 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax',
    "@often": "unrecognized descriptor: @often",
    "@every x": 'failed to parse duration @every x: time: invalid duration "x"',
}


@pytest.mark.spec("S-09")
@pytest.mark.parametrize("text", GOOD)
def test_a_good_schedule_has_no_error(text: str) -> None:
    assert schedule_error(text) == ""


@pytest.mark.spec("S-09")
@pytest.mark.parametrize(("text", "message"), BAD.items())
def test_a_bad_schedule_is_reported_as_the_library_does(text: str, message: str) -> None:
    assert schedule_error(text) == message
