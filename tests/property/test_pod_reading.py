"""Whatever stands where a part of a pod should be, reading gives a request or one sentence."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tessera.errors import InvalidInput
from tessera.model.pods import read_pod_ref, read_pod_request
from tessera.model.requests import PodRequest
from tessera.vendors.loading import load_catalogue
from tessera.vendors.rules import refine

CATALOGUE = load_catalogue()
KEYS = CATALOGUE.managed_resources()

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3)
)
NUMBERS = st.from_regex(r"-?[0-9]{1,12}(\.[0-9]{1,3})?(m|k|M|G|Ki|Mi|Gi|e3|x)?", fullmatch=True)
FIGURES = SCALARS | NUMBERS | st.integers(0, 200).map(str)
LIMITS = st.dictionaries(st.sampled_from([*KEYS, "cpu", "memory"]), FIGURES, max_size=6)

POD: dict[str, Any] = {
    "metadata": {
        "name": "p",
        "annotations": {"nvidia.com/numa-bind": "true", "hami.io/device-scoring-weights": "slot=1,core=1,memory=1"},
    },
    "spec": {
        "containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}, "requests": {"cpu": "1"}}}],
        "initContainers": [{"restartPolicy": "Always", "resources": {"limits": {"nvidia.com/gpumem": "5"}}}],
        "overhead": {"cpu": "1"},
        "nodeSelector": {"a": "b"},
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]
                }
            }
        },
    },
}


def places(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path to every part of a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [here, *(path for key, item in inner for path in places(item, (*here, key)))]


def replaced(path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    document = copy.deepcopy(POD)
    holder: Any = document
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    return document


def reads_or_says_why(document: Any) -> PodRequest | None:
    try:
        read_pod_ref(document)
        return read_pod_request(document, CATALOGUE, refine)
    except InvalidInput as error:
        sentence = str(error)
    assert ": " in sentence
    assert "expected" in sentence
    assert "\n" not in sentence
    return None


def test_the_pod_that_the_others_are_made_of_can_be_read():
    assert reads_or_says_why(POD)


@given(st.sampled_from(places(POD)), JSON)
def test_anything_in_place_of_any_part_gives_a_request_or_a_sentence(path, value):
    reads_or_says_why(replaced(path, value))


@given(JSON)
def test_anything_at_all_gives_a_request_or_a_sentence(document):
    reads_or_says_why(document)


@given(LIMITS, LIMITS)
def test_any_figures_give_a_request_within_bounds_or_a_sentence(limits, requests):
    document = {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"resources": {"limits": limits, "requests": requests}}]},
    }
    request = reads_or_says_why(document)
    for asked in request.containers[0].devices if request else ():
        assert asked.count >= 1
        assert 0 <= asked.cores_percent <= 100
        assert 0 <= asked.memory_percent <= 100
        assert (asked.memory_mib > 0) != (asked.memory_percent > 0)


@given(
    st.dictionaries(
        st.sampled_from([key for vendor in CATALOGUE for key in vendor.annotations.all()]), JSON, max_size=5
    )
)
def test_any_annotations_give_a_request_or_a_sentence(annotations):
    reads_or_says_why(replaced(("metadata", "annotations"), annotations))
