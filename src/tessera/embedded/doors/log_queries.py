"""What part of a log a query asks for. Pure."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from tessera.embedded import causes
from tessera.embedded.kinds import Kind
from tessera.embedded.refusals import Cause, bad_request, invalid
from tessera.embedded.runtime.logs import LogRequest

OPTIONS = Kind(version="v1", kind="PodLogOptions", plural="podlogoptions")
_TRUE = frozenset({"1", "t", "T", "true", "True", "TRUE", ""})
_AT_LEAST = {"tailLines": 0, "limitBytes": 1, "sinceSeconds": 1}
_TOO_SMALL = {0: "must be greater than or equal to 0", 1: "must be greater than 0"}


def read_log_query(query: Mapping[str, str], pod_name: str, now: datetime) -> LogRequest:
    numbers = {name: _number(name, query[name]) for name in _AT_LEAST if query.get(name)}
    wrong = [
        causes.invalid(name, number, _TOO_SMALL[_AT_LEAST[name]])
        for name, number in numbers.items()
        if number < _AT_LEAST[name]
    ]
    if "sinceSeconds" in numbers and query.get("sinceTime"):
        why = "at most one of `sinceTime` or `sinceSeconds` may be specified"
        wrong.append(Cause("FieldValueForbidden", f"Forbidden: {why}", ""))
    if wrong:
        raise invalid(OPTIONS, pod_name, wrong)
    since = _time("sinceTime", query["sinceTime"]) if query.get("sinceTime") else None
    if "sinceSeconds" in numbers:
        since = now - timedelta(seconds=numbers["sinceSeconds"])
    return LogRequest(
        tail_lines=numbers.get("tailLines"),
        limit_bytes=numbers.get("limitBytes"),
        since=since,
        timestamps=is_asked(query, "timestamps"),
    )


def is_asked(query: Mapping[str, str], name: str) -> bool:
    """A flag that is there without a value is meant."""
    return query.get(name, "false") in _TRUE


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise bad_request(f'{name} is "{text}", expected a whole number') from None


def _time(name: str, text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise bad_request(f'{name} is "{text}", expected a time such as 2026-01-02T03:04:05Z')
    return at
