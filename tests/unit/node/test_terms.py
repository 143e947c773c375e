"""How containers are held to their limits: what they say by their variables, within what the node permits."""

from typing import Any

import pytest

from tessera.errors import InvalidRequest
from tessera.node.limits import limits_text
from tessera.node.pods import Container, Variable
from tessera.node.terms import NOTHING_MORE, STRICT, Permitted, Terms, read_terms
from tests.builders import a_share
from tests.unit.node.making import CATALOGUE, a_tile

NVIDIA = CATALOGUE.by_name("NVIDIA")
assert NVIDIA
POLICY, PRIORITY = "GPU_CORE_UTILIZATION_POLICY", "CUDA_TASK_PRIORITY"
SPILL, ENDING = "CUDA_OVERSUBSCRIBE", "ACTIVE_OOM_KILLER"


def terms(*variables: tuple[str, str | None], permitted: Permitted = NOTHING_MORE, priority: int = 0) -> Terms:
    assert NVIDIA
    env = tuple(Variable(name=name, value=value) for name, value in variables)
    return read_terms(Container(name="main", env=env), NVIDIA.term_variables, permitted, priority)


def test_who_says_nothing_is_held_strictly():
    assert terms() == STRICT


@pytest.mark.parametrize("said", ["default", "DISABLE", " force "])
def test_a_container_chooses_its_policy(said: str):
    assert terms((POLICY, said)).cores_policy == said.strip().lower()


def test_a_node_chooses_for_those_who_do_not():
    lenient = Permitted(cores_policy="default")
    assert terms(permitted=lenient).cores_policy == "default"
    assert terms((POLICY, "force"), permitted=lenient).cores_policy == "force"
    assert terms((POLICY, None), permitted=lenient).cores_policy == "default", "what comes from elsewhere is not known"


def test_a_priority_that_is_asked_for_goes_before_a_variable():
    assert terms((PRIORITY, "1")).priority == 1
    assert terms((PRIORITY, "0"), priority=1).priority == 1


def test_memory_of_the_host_is_the_nodes_to_give_and_the_containers_to_refuse():
    generous = Permitted(spill_percent=50)
    assert terms(permitted=generous).spill_percent == 50
    assert terms((SPILL, "false"), permitted=generous).spill_percent == 0
    assert terms((SPILL, "true")).spill_percent == 0


def test_a_container_that_wants_to_end_at_a_refusal_says_so():
    assert terms((ENDING, "true")).ends_on_refusal
    assert not terms((ENDING, "0")).ends_on_refusal


@pytest.mark.parametrize(
    ("name", "said"), [(POLICY, "sometimes"), (PRIORITY, "-1"), (PRIORITY, "low"), (SPILL, "maybe"), (ENDING, "2")]
)
def test_a_word_that_cannot_be_read_is_refused_in_one_sentence(name: str, said: str):
    with pytest.raises(InvalidRequest, match=f'^container main has {name} "{said}", expected .*; correct the pod$'):
        terms((name, said))


@pytest.mark.parametrize("digits", [7, 5_000])
def test_a_priority_of_many_digits_is_refused_and_not_repeated_in_full(digits: int):
    with pytest.raises(InvalidRequest, match=r"of six digits at most; correct the pod$") as refused:
        terms((PRIORITY, "1" * digits))
    assert len(str(refused.value)) < 200


def test_what_is_not_strict_stands_in_the_limits():
    held: Any = Terms(cores_policy="default", priority=1, spill_percent=25, ends_on_refusal=True)
    text = limits_text(a_tile("12ab", a_share("GPU-7", 3000, 30), a_share("GPU-3", 0, 0), terms=held))
    assert text.splitlines()[4:] == [
        "cores_policy default",
        "priority 1",
        "on_refusal terminate",
        "card GPU-7 memory_mib 3000 cores_percent 30 spill_mib 750",
        "card GPU-3 memory_mib 0 cores_percent 0",
    ]
