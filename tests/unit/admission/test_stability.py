"""What a review writes is what it read: the same request, and nothing more to say about it."""

from hypothesis import assume, given
from hypothesis import strategies as st

from tessera.admission import DEFAULT_SETTINGS, Denial, Mutation, Settings, Untouched, review
from tessera.model.pods import read_pod_request
from tessera.vendors.rules import refine
from tests.unit.admission.pods import CATALOGUE, a_container, a_pod, apply_patch

SETTINGS = st.sampled_from(
    [DEFAULT_SETTINGS, Settings(hides_cards=True, core_policy="force", runtime_classes={"NVIDIA": "nvidia"})]
)
FIGURES = st.sampled_from(["0", "1", "2", "4", "16", "50", "100", "1000", "20000", "40000", "2Gi"])


@st.composite
def resources(draw):
    """Limits of one vendor or two, and requests that repeat some of them as a defaulted pod has them."""
    vendors = draw(st.lists(st.sampled_from(CATALOGUE.vendors), min_size=1, max_size=2))
    keys = [key for vendor in vendors for key in vendor.resources.by_key]
    limits = draw(st.dictionaries(st.sampled_from(keys), FIGURES, min_size=1, max_size=4))
    requests = limits if draw(st.booleans()) else {}
    return {"limits": limits, "requests": {"cpu": "1", **requests}}


NAMES = ["NVIDIA_VISIBLE_DEVICES", "CUDA_TASK_PRIORITY", "CUDA_VISIBLE_DEVICES", "A"]
VARIABLES = st.lists(st.sampled_from(NAMES), max_size=3)
CLAIMS = st.fixed_dictionaries(
    {},
    optional={
        "gpu.scheduling/claim": st.sampled_from(["mine", "", "Mine"]),
        "gpu.scheduling/allocated": st.sampled_from(["node-a:0,1", "node-a:3", "", "node-a"]),
    },
)
CONTAINERS = st.builds(
    lambda resources, names: a_container(resources=resources, env=[{"name": name, "value": "x"} for name in names]),
    resources(),
    VARIABLES,
) | st.just(a_container())
PODS = st.builds(
    lambda containers, init, name, claims: a_pod(
        *containers, initContainers=init, schedulerName=name, annotations=claims
    ),
    st.lists(CONTAINERS, min_size=1, max_size=3),
    st.lists(CONTAINERS, max_size=2),
    st.sampled_from(["default-scheduler", "hami-scheduler", "gpu-scheduler"]),
    CLAIMS,
)


@given(PODS, SETTINGS)
def test_a_patched_pod_reads_as_the_same_request_and_is_left_alone(pod, settings):
    verdict = review(pod, CATALOGUE, settings)
    assume(not isinstance(verdict, Denial))
    patched = apply_patch(pod, verdict.patch if isinstance(verdict, Mutation) else ())
    assert read_pod_request(patched, CATALOGUE, refine) == read_pod_request(pod, CATALOGUE, refine)
    assert review(patched, CATALOGUE, settings) == Untouched()


@given(PODS, SETTINGS)
def test_a_denial_is_one_sentence_about_the_pod(pod, settings):
    verdict = review(pod, CATALOGUE, settings)
    assume(isinstance(verdict, Denial))
    assert isinstance(verdict, Denial)
    assert verdict.sentence.startswith("default/web-0: ")
    assert ", expected " in verdict.sentence
    assert "\n" not in verdict.sentence
