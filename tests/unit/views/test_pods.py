from typing import Any

import msgspec
import pytest

from tessera.views.holdings import HoldingReader
from tessera.views.pods import PodView, view_pods
from tests.unit.views.making import CATALOGUE, NOW, a_node, a_pod, ago, an_event, held, unscheduled, uuids_of


def view(*pods: Any, nodes: Any = (), events: Any = ()) -> tuple[PodView, ...]:
    return view_pods(held(*pods), nodes, events, CATALOGUE)


def because(*pods: Any, **others: Any) -> tuple[str, str] | None:
    waits = view(*pods, **others)[0].waits
    return (waits.reason, waits.sentence) if waits else None


def test_only_pods_that_concern_cards_are_shown():
    given = a_pod("given", limits={}, node="gpu-a", cards={"GPU-0": 1})

    assert [pod.name for pod in view(a_pod("asks"), a_pod("web", limits={}), given)] == ["asks", "given"]


def test_what_a_pod_asks_for_is_told_by_container():
    limits = {"nvidia.com/gpu": "2", "nvidia.com/gpumem-percentage": "50", "nvidia.com/gpucores": "30"}
    containers = [{"name": "side"}, {"name": "work", "resources": {"limits": limits}}]
    (ask,) = view(a_pod(spec={"containers": containers}))[0].asks

    assert (ask.container, ask.vendor, ask.count) == ("work", "NVIDIA", 2)
    assert (ask.memory_mib, ask.memory_percent, ask.cores_percent) == (0, 50, 30)


def test_the_cards_that_a_pod_got_have_the_index_and_model_of_their_node():
    node = a_node()
    second = uuids_of(node)[1]
    pod = a_pod(node="gpu-a", cards={second: 8000})
    (known,), (unknown,) = view(pod, nodes=[node])[0].cards, view(pod)[0].cards

    assert (known.uuid, known.index, known.model) == (second, 1, "NVIDIA A100-SXM4-80GB")
    assert (known.container, known.memory_mib) == ("main", 8000)
    assert (unknown.uuid, unknown.index, unknown.model) == (second, None, None)


def test_the_schedulers_sentence_is_shown_without_what_it_says_of_preemption():
    message = "0/4 nodes are available: 4 no card has 9 MiB free. no new claims to deallocate, preemption: 0/4 nodes"
    (pod,) = view(a_pod(conditions=unscheduled(message)), events=[an_event("train", "older words")])

    assert pod.waits is not None
    assert pod.waits.sentence == "0/4 nodes are available: 4 no card has 9 MiB free"
    assert pod.waits.reason == "Unschedulable"
    assert (NOW - pod.waits.since).total_seconds() == 540 if pod.waits.since else False


def test_without_a_condition_the_latest_warning_tells():
    events = [
        an_event("train", "first", minutes=5),
        an_event("train", "last", minutes=1),
        an_event("train", "between", minutes=3),
        an_event("other", "not mine", seconds=1),
    ]

    assert because(a_pod(), events=events) == ("FilteringFailed", "last")


def test_a_pod_that_no_scheduler_looked_at_says_whose_turn_it_is():
    assert because(a_pod(spec={"schedulerName": "hami-scheduler"})) == (
        "NotScheduled",
        "no scheduler named hami-scheduler has looked at it yet",
    )


def test_a_request_that_cannot_be_read_is_what_the_pod_waits_for():
    pod = a_pod(limits={"nvidia.com/gpu": "1", "nvidia.com/gpumem": "8000Mi"}, conditions=unscheduled("whatever"))
    reason, sentence = because(pod) or ("", "")

    assert reason == "InvalidRequest"
    assert sentence.startswith('default/train: nvidia.com/gpumem is "8000Mi", expected a whole number of MiB')


def test_a_pod_on_a_node_without_cards_waits_for_them():
    assert because(a_pod(node="gpu-a", phase="Pending")) == (
        "NoCardsGiven",
        "it is on node gpu-a, but no cards were given to it there",
    )


@pytest.mark.parametrize(
    ("status", "events", "expected"),
    [
        ({"reason": "ImagePullBackOff", "message": "Back-off"}, [], ("ImagePullBackOff", "Back-off")),
        ({"reason": "CrashLoopBackOff"}, [], ("CrashLoopBackOff", "CrashLoopBackOff")),
        ({"reason": "ContainerCreating"}, [an_event("train", "no tile", reason="Failed")], ("Failed", "no tile")),
        ({"reason": "ContainerCreating"}, [], None),
    ],
)
def test_a_pod_with_cards_that_does_not_start_says_what_is_in_its_way(status: Any, events: Any, expected: Any):
    statuses = {"containerStatuses": [{"state": {"waiting": status}}]}
    pod = a_pod(node="gpu-a", cards={"GPU-0": 8000}, phase="Pending", status=statuses)

    assert because(pod, events=events) == expected


@pytest.mark.parametrize(
    "pod",
    [
        a_pod(node="gpu-a", cards={"GPU-0": 8000}),
        a_pod(phase="Succeeded"),
        a_pod(metadata={"deletionTimestamp": ago(seconds=3)}),
    ],
    ids=["running", "over", "going"],
)
def test_a_pod_that_runs_is_over_or_goes_waits_for_nothing(pod: Any):
    assert because(pod, events=[an_event("train", "old news")]) is None


def test_a_pod_that_is_read_again_in_another_state_is_seen_in_that_state():
    reader = HoldingReader(CATALOGUE)
    before, after = (a_pod(phase=phase, metadata={"resourceVersion": phase}) for phase in ("Pending", "Failed"))

    assert [reader.read([pod])[0].is_over for pod in (before, after, before)] == [False, True, False]
    assert reader.read([before])[0] is reader.read([before])[0]
    assert reader.read([]) == ()


def test_a_pod_that_is_being_deleted_says_so():
    assert view(a_pod(node="gpu-a", metadata={"deletionTimestamp": ago(seconds=3)}))[0].phase == "Terminating"


def test_pods_come_by_namespace_and_name():
    pods = [a_pod("b"), a_pod("a", namespace="zoo"), a_pod("a")]

    assert [pod.key for pod in view(*pods)] == ["default/a", "default/b", "zoo/a"]


def test_a_view_survives_json():
    seen = view(a_pod(conditions=unscheduled("no")), a_pod("two", node="gpu-a", cards={"GPU-0": 1}), nodes=[a_node()])

    assert msgspec.json.decode(msgspec.json.encode(seen), type=tuple[PodView, ...]) == seen
