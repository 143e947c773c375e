"""What an answer of the API server means, and whether to ask again."""

import pytest

from tessera import errors
from tessera.kube.requests import MOST_TRIES, Request, read_error, retry_wait_s

GET = Request(verb="get", path="/api/v1/pods", target="pods default/web-0")
CREATE = Request(verb="create", path="/api/v1/pods", target="pods in default")


def body(reason: str) -> bytes:
    return f'{{"kind":"Status","reason":"{reason}","message":"it is so","details":{{"name":"web-0"}}}}'.encode()


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (400, "BadRequest", errors.BadRequest),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (409, "AlreadyExists", errors.AlreadyExists),
        (409, "Conflict", errors.Conflict),
        (410, "Expired", errors.Expired),
        (410, "Gone", errors.Expired),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (503, "ServiceUnavailable", errors.ServerUnavailable),
        (500, "InternalError", errors.ServerFailed),
        (504, "Timeout", errors.ServerFailed),
        (405, "MethodNotAllowed", errors.ApiError),
    ],
)
def test_a_reason_has_its_error(status: int, reason: str, kind: type[errors.ApiError]) -> None:
    error = read_error(GET, body(reason), status=status)

    assert type(error) is kind
    assert (error.status, error.reason, error.message) == (status, reason, "it is so")
    assert (error.verb, error.target, error.details) == ("get", "pods default/web-0", {"name": "web-0"})


@pytest.mark.parametrize(
    ("status", "kind"), [(503, errors.ServerUnavailable), (502, errors.ServerFailed), (403, errors.Forbidden)]
)
def test_an_answer_of_a_proxy_is_judged_by_its_status(status: int, kind: type[errors.ApiError]) -> None:
    error = read_error(GET, b"<html>upstream", status=status)

    assert type(error) is kind
    assert error.message == "<html>upstream"


def test_an_error_is_one_sentence_with_what_to_do() -> None:
    error = read_error(GET, body("Conflict"), status=409)

    assert str(error) == (
        "get pods default/web-0: the API server answered 409 Conflict: it is so; read the object again and decide anew"
    )


@pytest.mark.parametrize(
    ("request_", "status", "retry_after", "wait_s"),
    [
        (GET, 429, "3", 3.0),
        (CREATE, 429, "3", 3.0),
        (GET, 503, "3", 3.0),
        (CREATE, 503, "3", None),
        (GET, 429, None, None),
        (GET, 429, "Wed, 21 Oct 2026 07:28:00 GMT", None),
        (GET, 500, "3", None),
        (GET, 429, "30", None),
    ],
)
def test_only_what_is_safe_and_in_time_is_tried_again(
    request_: Request, status: int, retry_after: str | None, wait_s: float | None
) -> None:
    error = read_error(request_, b"", status=status, retry_after=retry_after)

    assert retry_wait_s(error, request_, tries=1, left_s=20.0) == wait_s


def test_trying_again_has_an_end() -> None:
    error = read_error(GET, b"", status=429, retry_after="1")

    assert retry_wait_s(error, GET, tries=MOST_TRIES, left_s=20.0) is None
