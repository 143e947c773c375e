"""What a bind writes on a pod, how large it is, and how an allocation is read back from others' pods."""

import pytest

from tessera.errors import InvalidAnnotation
from tessera.model.allocations import Allocation, CardShare
from tessera.model.annotations.binding import (
    AllocationKeys,
    BindOptions,
    BindPhase,
    BindState,
    bind_marks,
    node_label,
    read_allocation,
    read_bind_state,
)
from tessera.vendors.loading import load_catalogue

NVIDIA = AllocationKeys("hami.io/vgpu-devices-to-allocate", "hami.io/vgpu-devices-allocated")
KEYS = {
    "NVIDIA": NVIDIA,
    "DCU": AllocationKeys("hami.io/dcu-devices-to-allocate", "hami.io/dcu-devices-allocated"),
    "kunlun": AllocationKeys("", "hami.io/kunlun-allocated"),
}
NOW = 1_755_770_405


def share(uuid: str, vendor: str = "NVIDIA", memory: int = 3000, cores: int = 30) -> CardShare:
    return CardShare(uuid=uuid, vendor=vendor, memory_mib=memory, cores_percent=cores)


def size_of(annotations: dict[str, str]) -> int:
    return sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())


def size_of_eight_cards(node: str, memory: int) -> int:
    uuids = [f"GPU-{i:08x}-ffff-ffff-ffff-ffffffffffff" for i in range(8)]
    cards = tuple(share(uuid, memory=memory, cores=100) for uuid in uuids)
    indexes = {uuid: index for index, uuid in enumerate(uuids)}
    return size_of(bind_marks(Allocation(node, (cards,)), indexes, KEYS, NOW)[0])


def test_a_bind_writes_both_seeds_forms_and_hamis():
    allocation = Allocation("node67", ((), (share("GPU-a"), share("GPU-b")), ()))
    annotations, labels = bind_marks(allocation, {"GPU-a": 0, "GPU-b": 3}, KEYS, NOW)
    assert annotations == {
        "hami.io/vgpu-node": "node67",
        "hami.io/vgpu-time": "1755770405",
        "hami.io/devices-to-allocate": "GPU-a,NVIDIA,3000,30:GPU-b,NVIDIA,3000,30:",
        "hami.io/scheduling-result": (
            '{"node":"node67","devices":[{"id":"0","memory":"3000"},{"id":"3","memory":"3000"}]}'
        ),
        "hami.io/device-allocated": "nvidia-gpu-0,nvidia-gpu-3",
        "hami.io/vgpu-devices-to-allocate": ";GPU-a,NVIDIA,3000,30:GPU-b,NVIDIA,3000,30:;;",
        "hami.io/vgpu-devices-allocated": ";GPU-a,NVIDIA,3000,30:GPU-b,NVIDIA,3000,30:;;",
    }
    assert labels == {"hami.io/vgpu-node": "node67"}


def test_phase_and_time_are_written_for_those_who_wait_for_them():
    allocation = Allocation("n", ((share("GPU-a"),),))
    options = BindOptions(bind_phase="allocating", bind_time=True, label=False)
    annotations, labels = bind_marks(allocation, {"GPU-a": 0}, KEYS, NOW, options)
    assert annotations["hami.io/bind-phase"] == "allocating"
    assert annotations["hami.io/bind-time"] == "1755770405"
    assert labels == {}


@pytest.mark.parametrize(("memory", "longest_name"), [(81_920, 61), (143_771, 45)])
def test_eight_whole_cards_fit_in_two_kilobytes(memory: int, longest_name: int):
    """A node's name stands there twice, so a character more takes two bytes more; 143771 MiB is an H200."""
    assert size_of_eight_cards("n" * longest_name, memory) == 2048
    assert size_of_eight_cards("n" * (longest_name + 1), memory) == 2050


def test_every_vendor_of_a_pod_has_its_own_lists_with_its_own_empty_slots():
    allocation = Allocation("n", ((share("GPU-a"),), (share("DCU-a", "DCU"), share("X-0", "kunlun")), ()))
    annotations, _ = bind_marks(allocation, {"GPU-a": 0, "DCU-a": 1, "X-0": 2}, KEYS, NOW)
    assert annotations["hami.io/vgpu-devices-allocated"] == "GPU-a,NVIDIA,3000,30:;;;"
    assert annotations["hami.io/dcu-devices-allocated"] == ";DCU-a,DCU,3000,30:;;"
    assert annotations["hami.io/kunlun-allocated"] == ";X-0,kunlun,3000,30:;;"
    assert annotations["hami.io/device-allocated"] == "nvidia-gpu-0,dcu-gpu-1,kunlun-gpu-2"
    assert "" not in annotations
    assert read_allocation(annotations, KEYS, 3, "pod p") == allocation


@pytest.mark.parametrize(
    ("card", "indexes", "sentence"),
    [
        (
            share("GPU-a", "TPU"),
            {"GPU-a": 0},
            "no annotation keys are known for cards of type TPU, expected them in the catalogue",
        ),
        (share("GPU-a"), {}, "card GPU-a has no index, expected one for every card of the allocation"),
    ],
)
def test_a_bind_that_lacks_something_is_not_written(card: CardShare, indexes: dict[str, int], sentence: str):
    with pytest.raises(InvalidAnnotation) as error:
        bind_marks(Allocation("n", ((card,),)), indexes, KEYS, NOW)
    assert str(error.value) == sentence


def test_what_was_allocated_counts_before_what_is_to_be():
    annotations = {
        "hami.io/vgpu-node": "n",
        "hami.io/vgpu-devices-allocated": "GPU-a,NVIDIA,1,1:;",
        "hami.io/vgpu-devices-to-allocate": "GPU-b,NVIDIA,1,1:;",
        "hami.io/devices-to-allocate": "GPU-c,NVIDIA,1,1:",
    }
    asked = {"NVIDIA": [0]}
    for expected in ("GPU-a", "GPU-b", "GPU-c"):
        read = read_allocation(annotations, KEYS, 1, "pod p", asking=asked)
        assert read is not None
        assert [card.uuid for card in read.shares] == [expected]
        del annotations[next(key for key, value in annotations.items() if expected in value)]
    assert read_allocation(annotations, KEYS, 1, "pod p", asking=asked) is None


@pytest.mark.parametrize("asking", [{}, {"NVIDIA": [0, 1]}, {"NVIDIA": [0], "DCU": [1]}])
def test_the_flat_list_says_nothing_when_several_containers_may_be_meant(asking: dict[str, list[int]]):
    annotations = {"hami.io/vgpu-node": "n", "hami.io/devices-to-allocate": "GPU-c,NVIDIA,1,1:"}
    assert read_allocation(annotations, KEYS, 2, "pod p", asking=asking) is None


def test_a_type_that_is_no_common_word_means_the_vendor_of_the_key():
    annotations = {"hami.io/vgpu-node": "n", "hami.io/vgpu-devices-allocated": "GPU-a,Tesla P4,1,1:;"}
    read = read_allocation(annotations, KEYS, 1, "pod p")
    assert read is not None
    assert read.shares[0].vendor == "NVIDIA"


def test_lists_that_two_vendors_share_are_read_once():
    both = {"Ascend910A": NVIDIA, "NVIDIA": NVIDIA}
    annotations = {"hami.io/vgpu-node": "n", "hami.io/vgpu-devices-allocated": "GPU-a,NVIDIA,1,1:;N-0,Ascend910A,1,1:;"}
    read = read_allocation(annotations, both, 2, "pod p")
    assert read is not None
    assert [card.vendor for card in read.shares] == ["NVIDIA", "Ascend910A"]


def test_where_the_pod_runs_counts_before_what_its_annotations_say():
    annotations = {"hami.io/vgpu-node": "n", "hami.io/vgpu-devices-allocated": "GPU-a,NVIDIA,1,1:;"}
    read = read_allocation(annotations, KEYS, 1, "pod p", node="m")
    assert read is not None
    assert read.node == "m"


def test_cards_on_no_node_are_refused():
    with pytest.raises(InvalidAnnotation) as error:
        read_allocation({"hami.io/vgpu-devices-allocated": "GPU-a,NVIDIA,1,1:;"}, KEYS, 1, "pod default/p")
    assert str(error.value) == (
        "pod default/p: hami.io/vgpu-node is missing, expected the name of the node whose cards it holds"
    )


def test_a_broken_list_names_pod_key_and_place():
    with pytest.raises(InvalidAnnotation) as error:
        read_allocation({"hami.io/vgpu-devices-allocated": ";GPU-a,NVIDIA,x,1:;"}, KEYS, 2, "pod default/p")
    assert str(error.value) == (
        'pod default/p: hami.io/vgpu-devices-allocated container 1 card 0: memory is "x", '
        "expected a whole number of MiB such as 40960"
    )


def test_a_name_that_fits_is_its_own_label():
    assert node_label("n" * 63) == "n" * 63
    assert node_label("n" * 64) != node_label("n" * 65)


def test_a_pod_bound_by_volcano_is_understood():
    annotations = {
        "volcano.sh/vgpu-node": "n",
        "volcano.sh/vgpu-ids-new": ";GPU-a,NVIDIA,3000,30:",
        "volcano.sh/devices-to-allocate": ";",
        "volcano.sh/vgpu-time": "1755770405",
        "volcano.sh/bind-time": "1755770406",
        "volcano.sh/bind-phase": "success",
    }
    card = CardShare(uuid="GPU-a", vendor="NVIDIA", memory_mib=3000, cores_percent=30)
    names = load_catalogue().allocation_keys()
    assert read_allocation(annotations, names, 2, "pod p") == Allocation("n", ((), (card,)))
    assert read_bind_state(annotations, "pod p") == BindState(
        phase=BindPhase.SUCCESS, decided_at=1755770405, bound_at=1755770406
    )


def test_a_pod_that_volcano_has_yet_to_serve_is_understood():
    annotations = {"volcano.sh/vgpu-node": "n", "volcano.sh/devices-to-allocate": "GPU-a,NVIDIA,3000,30:"}
    read = read_allocation(annotations, load_catalogue().allocation_keys(), 1, "pod p")
    assert read is not None
    assert [share.uuid for share in read.shares] == ["GPU-a"]


def test_the_state_of_a_bind_is_read_and_nonsense_is_told():
    assert read_bind_state({}, "pod p") == BindState()
    ours = {"hami.io/bind-phase": "allocating", "hami.io/vgpu-time": "7", "volcano.sh/vgpu-time": "8"}
    assert read_bind_state(ours, "pod p") == BindState(phase=BindPhase.ALLOCATING, decided_at=7)
    with pytest.raises(InvalidAnnotation) as error:
        read_bind_state({"volcano.sh/bind-phase": "maybe"}, "pod p")
    assert str(error.value) == 'pod p: volcano.sh/bind-phase is "maybe", expected allocating, success, failed'
    with pytest.raises(InvalidAnnotation, match=r'^pod p: hami.io/bind-time is "soon", expected seconds since 1970$'):
        read_bind_state({"hami.io/bind-time": "soon"}, "pod p")
