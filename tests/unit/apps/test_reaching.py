"""What a command for people says beside its answer."""

import pytest
import structlog

from tessera.apps.reaching import Sentences


def test_a_server_that_is_away_is_told_once_whatever_was_watched():
    sentences = Sentences()

    def hear(request: str, failures: int) -> str:
        error = f"{request}: the API server cannot be reached: it hung up"
        return sentences(None, "warning", {"event": "watch interrupted", "error": error, "failures": failures})

    assert (
        hear("watch pods in default", 0) == "tessera: watch interrupted: the API server cannot be reached: it hung up"
    )
    for request in ("watch nodes", "watch pods in default", "list nodes"):
        with pytest.raises(structlog.DropEvent):
            hear(request, 1)


def test_another_sentence_is_told():
    sentences = Sentences()
    sentences(None, "warning", {"event": "watch interrupted", "error": "the server hung up"})
    odd = {"event": "object not decoded", "kind": "pods", "key": "team/one", "problem": "spec is missing"}
    assert sentences(None, "warning", odd) == "tessera: object not decoded team/one: spec is missing"


def test_what_failed_is_told_without_its_traceback():
    try:
        raise RuntimeError("no such card")
    except RuntimeError:
        told = Sentences()(None, "error", {"event": "handler failed", "key": "team/one", "exc_info": True})
    assert told == "tessera: handler failed team/one: no such card"
