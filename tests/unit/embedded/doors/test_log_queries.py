"""What part of a log a query asks for."""

from datetime import UTC, datetime

import pytest

from tessera.embedded.doors.log_queries import is_asked, read_log_query
from tessera.embedded.refusals import ApiRefusal
from tessera.embedded.runtime.logs import LogRequest

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def read(**query):
    return read_log_query(query, "worker", NOW)


def test_nothing_asked_is_everything():
    assert read() == LogRequest()


def test_all_parts_can_be_asked_for():
    asked = read(tailLines="3", limitBytes="9", timestamps="true", sinceSeconds="65")
    since = datetime(2026, 1, 2, 3, 3, 0, tzinfo=UTC)
    assert asked == LogRequest(tail_lines=3, limit_bytes=9, timestamps=True, since=since)
    assert read(sinceTime="2026-01-02T03:03:00Z").since == since
    assert read(tailLines="0").tail_lines == 0


@pytest.mark.parametrize(
    ("query", "code", "words"),
    [
        ({"tailLines": "-1"}, 422, "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ({"limitBytes": "0"}, 422, "limitBytes: Invalid value: 0: must be greater than 0"),
        ({"sinceSeconds": "0"}, 422, "sinceSeconds: Invalid value: 0: must be greater than 0"),
        ({"sinceSeconds": "1", "sinceTime": "2026-01-02T03:04:05Z"}, 422, "at most one of `sinceTime` or"),
        ({"tailLines": "few"}, 400, 'tailLines is "few", expected a whole number'),
        ({"sinceTime": "yesterday"}, 400, 'sinceTime is "yesterday", expected a time'),
        ({"sinceTime": "2026-01-02T03:04:05"}, 400, "expected a time"),
    ],
)
def test_what_cannot_be_meant_is_refused(query, code, words):
    with pytest.raises(ApiRefusal) as refusal:
        read(**query)
    assert refusal.value.code == code
    assert words in refusal.value.message


def test_a_flag_without_a_value_is_meant():
    assert is_asked({"follow": ""}, "follow")
    assert not is_asked({"follow": "false"}, "follow")
    assert not is_asked({}, "follow")
