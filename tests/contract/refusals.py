"""Expecting an API server to say no."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.contract.api import Refused


@contextmanager
def refused(status: int, reason: str | None = None) -> Iterator[pytest.ExceptionInfo[Refused]]:
    """The block must end in a refusal with this status and reason; `.value` tells the rest."""
    with pytest.raises(Refused) as caught:
        yield caught
    body = caught.value.body
    assert caught.value.status == status, body
    if reason:
        assert (body["kind"], body["apiVersion"], body["status"]) == ("Status", "v1", "Failure")
        assert (body["code"], body["reason"]) == (status, reason), body
