import asyncio
import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.embedded.runtime.log_files import LONGEST_LINE, OLDER, LineStamper, LogFile, stamp
from tessera.embedded.runtime.logs import LogRequest, read_log


def read(path, **request):
    async def joined():
        return b"".join([piece async for piece in read_log(path, LogRequest(**request))])

    return asyncio.run(joined())


def write(path, *records):
    path.write_bytes(b"".join(record.encode() + b"\n" for record in records))


@given(st.lists(st.binary(max_size=50), max_size=20), st.integers(min_value=1, max_value=7))
def test_what_was_printed_is_read_back_however_it_came(tmp_path_factory, pieces, size):
    path = tmp_path_factory.mktemp("log") / "0.log"
    printed = b"\n".join(pieces)
    stamper, log = LineStamper("stdout"), LogFile(str(path), 1 << 20)
    for start in range(0, len(printed), size):
        log.write(stamper.take(printed[start : start + size]))
    log.write(stamper.end())
    assert read(path) == printed


def test_a_line_that_is_too_long_is_kept_in_parts():
    records = LineStamper("stderr").take(b"x" * (2 * LONGEST_LINE + 5) + b"\n").splitlines()
    assert [record.split(b" ")[2] for record in records] == [b"P", b"P", b"F"]


def test_records_are_as_container_runtimes_write_them():
    record = LineStamper("stdout").take(b"the line\n").decode()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z stdout F the line\n", record)


def test_a_full_log_keeps_its_newer_half(tmp_path):
    log = LogFile(str(tmp_path / "0.log"), 200)
    for number in range(20):
        log.write(f"{stamp(number)} stdout F {number}\n".encode())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.log", f"0.log{OLDER}"]
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 200
    kept = read(tmp_path / "0.log").split()
    assert kept == [str(number).encode() for number in range(20 - len(kept), 20)]
    assert read(tmp_path / "0.log", tail_lines=2) == b"18\n19\n"


def test_parts_of_one_line_are_joined(tmp_path):
    write(tmp_path / "0.log", f"{stamp(1)} stdout P one ", f"{stamp(2)} stdout F line")
    assert read(tmp_path / "0.log") == b"one line\n"


@pytest.mark.parametrize(
    ("request_", "shown"),
    [
        ({"tail_lines": 2}, b"b\nc\n"),
        ({"tail_lines": 9}, b"a\nb\nc\n"),
        ({"tail_lines": 2, "limit_bytes": 3}, b"b\nc"),
        ({"since": datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC)}, b"b\nc\n"),
        ({"since": datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC), "tail_lines": 1}, b"c\n"),
        ({"limit_bytes": 0}, b""),
        ({"timestamps": True, "tail_lines": 1}, b"1970-01-01T00:00:03.000000000Z c\n"),
    ],
)
def test_a_part_of_a_log_is_chosen(tmp_path, request_, shown):
    path = tmp_path / "0.log"
    write(path, *(f"{stamp(second * 10**9)} stdout F {word}" for second, word in ((1, "a"), (2, "b"), (3, "c"))))
    assert read(path, **request_) == shown


def test_a_log_that_is_not_there_is_empty(tmp_path):
    assert read(tmp_path / "0.log") == b""


def test_a_record_that_is_half_written_is_not_shown_yet(tmp_path):
    path = tmp_path / "0.log"
    path.write_bytes(f"{stamp(1)} stdout F whole\n{stamp(2)} stdout F ha".encode())
    assert read(path) == b"whole\n"
