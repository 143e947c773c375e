"""The extender's messages are read as Go reads them and written as Go writes them."""

import msgspec
import pytest

from tessera.errors import InvalidRequest
from tessera.model.extender import BindingArgs, ExtenderArgs, FilterResult, HostPriority, read_args


def test_names_come_alone_or_with_their_nodes():
    assert read_args(b'{"Pod":{},"Nodes":null,"NodeNames":["a","b"]}', ExtenderArgs).names() == ["a", "b"]
    nodes = b'{"Pod":{},"Nodes":{"items":[{"metadata":{"name":"a"},"spec":{}}]},"NodeNames":null}'
    assert read_args(nodes, ExtenderArgs).names() == ["a"]


def test_field_names_may_be_in_any_case():
    assert read_args(b'{"pod":{"x":1},"nodenames":["a"]}', ExtenderArgs).names() == ["a"]
    assert read_args(b'{"Pod":{"x":1},"nodeNames":["a"]}', ExtenderArgs).names() == ["a"]
    args = read_args(b'{"podName":"p","podNamespace":"n","podUID":"u","node":"a"}', BindingArgs)
    assert args == BindingArgs(pod_name="p", pod_namespace="n", pod_uid="u", node="a")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "the body is no ExtenderArgs of kube-scheduler: Input data was truncated"),
        (b"[" * 100_000, "the body is no ExtenderArgs"),
        (b'{"Pod":{"a":"\xff"}}', "the body is no ExtenderArgs"),
        (b"[]", "Expected `object`, got `array`"),
        (b'{"NodeNames":["a"]}', "Object missing required field `Pod`"),
        (b'{"Pod":{},"NodeNames":[1]}', r"Expected `str`, got `int` - at `\$\.NodeNames\[0\]`"),
    ],
)
def test_a_body_that_is_something_else_is_told_in_a_sentence(body, sentence):
    with pytest.raises(InvalidRequest, match=sentence):
        read_args(body, ExtenderArgs)


def test_answers_have_the_names_of_go():
    answer = msgspec.json.decode(msgspec.json.encode(FilterResult(node_names=["a"], failed_nodes={"b": "full"})))
    assert answer == {
        "Nodes": None,
        "NodeNames": ["a"],
        "FailedNodes": {"b": "full"},
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    }
    assert msgspec.json.encode(HostPriority(host="a", score=7)) == b'{"Host":"a","Score":7}'
