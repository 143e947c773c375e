"""What is sent to the cluster, and what never is because it cannot be right."""

import pytest

from kpu.client import Compute, InvalidCompute
from kpu.client.intent import INTENT, Intent

CHARACTERS = "expected text that has a form in UTF-8, without the character of code 0"


def test_the_manifest_holds_the_whole_intent_and_no_empty_field():
    intent = Intent(
        name="my-compute",
        image="registry.example/server:1",
        command=["python"],
        args=["-m", "server"],
        env={"LOG_LEVEL": "DEBUG"},
        labels={"team": "ml"},
        annotations={"note": "a"},
        resources={"nvidia.com/gpu": 1, "memory": "2Gi"},
        tls_secret="my-tls",
    )
    manifest = intent.manifest("lab", suspend=True)
    assert manifest == {
        "apiVersion": "compute.kpu.dev/v1alpha1",
        "kind": "Compute",
        "metadata": {
            "name": "my-compute",
            "namespace": "lab",
            "labels": {"team": "ml"},
            "annotations": {"note": "a", INTENT: intent.digest},
        },
        "spec": {
            "image": "registry.example/server:1",
            "command": ["python"],
            "args": ["-m", "server"],
            "env": [{"name": "LOG_LEVEL", "value": "DEBUG"}],
            "labels": {"team": "ml"},
            "annotations": {"note": "a"},
            "resources": {"nvidia.com/gpu": "1", "memory": "2Gi"},
            "tls": {"secretName": "my-tls"},
            "suspend": True,
        },
    }


def test_a_name_alone_makes_a_spec_that_is_not_empty():
    assert Intent(name="x").manifest("lab", suspend=False)["spec"] == {"suspend": False}


def test_an_empty_command_is_said_and_an_absent_one_is_not():
    assert Intent(name="x", command=[]).manifest("lab", suspend=False)["spec"]["command"] == []
    assert "command" not in Intent(name="x").manifest("lab", suspend=False)["spec"]


def test_suspending_does_not_change_the_intent():
    intent = Intent(name="x", image="a")
    suspended, resumed = (intent.manifest("lab", suspend=one)["metadata"]["annotations"] for one in (True, False))
    assert suspended == resumed
    assert intent.digest != Intent(name="x", image="b").digest


@pytest.mark.parametrize("name", ["Bad", "1st", "a_b", "a-", "-a", "a.b", "", "x" * 64, None, 5])
def test_a_name_that_is_no_dns_label_is_refused_before_anything_is_sent(server, name):
    with pytest.raises(InvalidCompute, match=r"The name of a Compute is .*, expected"):
        Compute(name)
    assert server.requests == []


@pytest.mark.parametrize("name", ["a", "a1", "my-compute", "x" * 63])
def test_a_dns_label_of_at_most_63_characters_is_a_name(name):
    assert Intent(name=name).name == name


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"env": {"CHUNK_SIZE": 5}}, "Compute x: env['CHUNK_SIZE'] is 5, expected a string, such as '5'"),
        ({"env": {"A": None}}, "Compute x: env['A'] is None, expected a string, such as 'None'"),
        ({"env": ["A=1"]}, "Compute x: env is ['A=1'], expected a dict of strings, such as {'LOG_LEVEL': 'DEBUG'}"),
        (
            {"env": {"A=B": "1"}},
            "Compute x: a name in env is 'A=B', expected a string that is not empty and has no '='",
        ),
        ({"labels": {"gpu": True}}, "Compute x: labels['gpu'] is True, expected a string, such as 'True'"),
        ({"annotations": {"n": 1.5}}, "Compute x: annotations['n'] is 1.5, expected a string, such as '1.5'"),
        ({"args": "-v"}, "Compute x: args is '-v', expected a list of strings, such as ['python', '-m', 'server']"),
        ({"command": ["sleep", 5]}, "Compute x: a word of command is 5, expected a string, such as '5'"),
        ({"image": ""}, "Compute x: image is '', expected the name of an image, such as 'kpu-torch-server:latest'"),
        ({"port": 70000}, "Compute x: port is 70000, expected a whole number from 1 to 65535"),
        ({"suspend": "no"}, "Compute x: suspend is 'no', expected True or False"),
        ({"host": ""}, "Compute x: host is '', expected a name or an address, such as 'localhost'"),
        (
            {"host": "localhost:6000"},
            "Compute x: host is 'localhost:6000', expected it without a port, which is given as `port`",
        ),
        ({"resources": {"cpu": [1]}}, "Compute x: resources['cpu'] is [1], expected an amount, such as 1 or '500m'"),
        (
            {"resources": {3: 1}},
            "Compute x: a name in resources is 3, expected that of a resource, such as 'nvidia.com/gpu'",
        ),
        (
            {"resources": {"": 1}},
            "Compute x: a name in resources is '', expected that of a resource, such as 'nvidia.com/gpu'",
        ),
        ({"env": {"A": "1\0"}}, f"Compute x: env['A'] is '1\\x00', {CHARACTERS}"),
        ({"annotations": {"a": "\udcff"}}, f"Compute x: annotations['a'] is '\\udcff', {CHARACTERS}"),
        ({"args": ["a", "\0"]}, f"Compute x: a word of args is '\\x00', {CHARACTERS}"),
        ({"tls": True}, "Compute x: tls is True, expected the name of a Secret of type kubernetes.io/tls"),
    ],
)
def test_what_cannot_be_right_is_refused_in_one_sentence_before_anything_is_sent(server, wrong, sentence):
    with pytest.raises(InvalidCompute) as refused:
        Compute("x", **wrong)
    assert str(refused.value) == sentence
    assert isinstance(refused.value, ValueError)
    assert server.requests == []
