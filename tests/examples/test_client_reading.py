"""What the Python client makes of annotations: against our codecs, and in forms that only others write."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.client.python.hami_client import (
    FRESH,
    HAMiError,
    MalformedAnnotation,
    _memory_in_use,
    parse_allocation,
    parse_handshake,
    parse_register,
    read_allocations,
    read_handshakes,
    read_node,
    read_pod,
    read_registers,
)
from tessera.model.allocations import Allocation
from tessera.model.annotations.allocations import encode_containers, encode_seed_devices
from tessera.model.annotations.handshakes import Handshake, HandshakeState, HandshakeStyle, encode_handshake
from tessera.model.annotations.registers import RegisterFormat, encode_register
from tessera.model.devices import Device
from tests.property.annotation_strategies import allocations, any_text, devices, moments, plain_text

NOW = datetime(2026, 8, 21, 10, 0, 5, tzinfo=UTC)
REGISTER = "hami.io/node-nvidia-register"
CARD = "GPU-a,10,40960,100,NVIDIA A100,0,true:"
FIGURES = {"slots": "split", "memory_mib": "memory_mb", "cores_percent": "cores", "numa": "numa", "healthy": "healthy"}


def assert_is(found: list[Any], cards: list[Device], *more: str) -> None:
    """The client's cards are ours, in what all forms carry and in these fields."""
    names = {"uuid": "uuid", "model": "type", **FIGURES, **{name: name for name in more}}
    told = [{name: card[theirs] for name, theirs in names.items()} for card in found]
    assert told == [{name: getattr(card, name) for name in names} for card in cards]


@given(cards=devices(plain_text))
def test_seven_fields_are_read_as_our_codec_writes_them(cards: list[Device]):
    assert_is(parse_register(encode_register(cards, RegisterFormat.SEED)), cards)


@given(cards=devices(plain_text))
def test_nine_fields_are_read_as_our_codec_writes_them(cards: list[Device]):
    assert_is(parse_register(encode_register(cards, RegisterFormat.HAMI)), cards, "index", "mode")


@given(cards=devices(any_text))
def test_json_is_read_as_our_codec_writes_it(cards: list[Device]):
    assert_is(parse_register(encode_register(cards, RegisterFormat.JSON)), cards, "index", "mode")


def test_a_card_of_seven_fields_has_the_index_of_its_position_and_no_last_colon_is_needed():
    first, second = parse_register("GPU-a,10,40960,100,A100,0,true:GPU-b,10,40960,100,A100,1,false")
    assert (first["index"], second["index"]) == (0, 1)
    assert (first["healthy"], second["healthy"]) == (True, False)
    assert second["mode"] == "hami-core"


def test_a_json_card_without_health_is_ill():
    assert not parse_register('[{"id":"GPU-a"}]')[0]["healthy"]
    assert parse_register("null") == parse_register("[]") == parse_register("") == []


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("GPU-a,10,40960:", 'card "GPU-a,10,40960" has 3 fields, expected 7 or 9'),
        ("GPU-a,1,1,1,A,0,true,0:", 'card "GPU-a,1,1,1,A,0,true,0" has 8 fields, expected 7 or 9'),
        ("GPU-a,ten,1,1,A,0,true:", 'card "GPU-a,ten,1,1,A,0,true" has a figure that is no whole number'),
        (",10,1,1,A,0,true:", 'card ",10,1,1,A,0,true" has no id'),
        ('[{"id":', '"[{"id":" is no JSON, expected a list of cards'),
        ("[1]", 'card "1" has no id'),
    ],
)
def test_a_register_that_cannot_be_read_is_told_in_a_sentence(text: str, sentence: str):
    with pytest.raises(MalformedAnnotation) as refused:
        parse_register(text)
    assert str(refused.value) == sentence


@given(text=st.text() | st.text('[]{}:,"0ai\u00b2').map(lambda text: f"[{text}]"))
def test_whatever_stands_there_ends_in_cards_or_in_our_error(text: str):
    for parse in (parse_register, parse_allocation):
        with suppress(HAMiError):
            parse(text)


def test_registers_of_all_vendors_are_found_by_their_keys():
    found, problems = read_registers(
        {
            REGISTER: CARD,
            "hami.io/node-register-Ascend910B4": '[{"id":"npu-0","health":true}]',
            "hami.io/node-dcu-register": "broken:DCU-a,4,65536,100,K100,0,true:",
            "hami.io/node-nvidia-score": "[]",
        }
    )
    cards = {device["vendor"]: device["uuid"] for device in found}
    assert cards == {"nvidia": "GPU-a", "Ascend910B4": "npu-0", "dcu": "DCU-a"}
    assert problems == ['hami.io/node-dcu-register: card "broken" has 1 fields, expected 7 or 9']


@given(state=st.sampled_from(HandshakeState), style=st.sampled_from(HandshakeStyle), at=moments)
def test_a_handshake_is_read_as_our_codec_writes_it(state: HandshakeState, style: HandshakeStyle, at: datetime):
    assert parse_handshake(encode_handshake(Handshake(state, at), style)) == {"state": state, "at": at}


@pytest.mark.parametrize(
    "text",
    [
        "Reported 2026-08-21 10:00:05",
        "Reported 2026-08-21 12:00:05.43 +0200 CEST m=+11.2",
        "Reported_2026.08.21 10:00:05",
        "2026-08-21T10:00:05Z",
    ],
)
def test_every_spelling_of_a_report_means_the_same(text: str):
    assert parse_handshake(text) == {"state": "Reported", "at": NOW}


def test_a_time_that_no_calendar_knows_is_none():
    assert parse_handshake("Requesting_2026-13-41 10:00:05") == {"state": "Requesting", "at": None}


@pytest.mark.parametrize(("newer", "older"), [("", "-nvidia"), ("-nvidia", "")])
def test_nvidia_s_handshake_is_the_newer_of_its_two_keys(newer: str, older: str):
    annotations = {
        REGISTER: CARD,
        f"hami.io/node-handshake{older}": "Requesting_2026-08-21 09:00:00",
        f"hami.io/node-handshake{newer}": "Reported 2026-08-21 10:00:05",
    }
    assert read_handshakes(annotations) == {"nvidia": {"state": "Reported", "at": NOW}}


def held(allocation: Allocation) -> list[tuple[int, str, str, int, int]]:
    return [
        (position, share.uuid, share.vendor, share.memory_mib, share.cores_percent)
        for position, shares in enumerate(allocation.containers)
        for share in shares
    ]


@given(allocation=allocations)
def test_a_device_list_is_read_as_our_codec_writes_it(allocation: Allocation):
    listed = parse_allocation(encode_containers(allocation.containers))
    assert [tuple(part.values()) for part in listed] == held(allocation)
    flat = parse_allocation(encode_seed_devices(allocation))
    assert [part["uuid"] for part in flat] == [share.uuid for share in allocation.shares]


def test_empty_slots_and_slices_are_read_as_others_write_them():
    (part,) = parse_allocation(",,0,0:;GPU-a[1g.5gb-0],NVIDIA,4864,14:;;")
    assert part == {"container": 1, "uuid": "GPU-a", "type": "NVIDIA", "memory_mb": 4864, "cores": 14}


def test_the_lasting_list_of_each_vendor_counts_and_the_flat_one_only_without_them():
    annotations = {
        "hami.io/vgpu-devices-to-allocate": ";",
        "hami.io/vgpu-devices-allocated": "GPU-a,NVIDIA,1,1:;",
        "hami.io/dcu-devices-to-allocate": "DCU-a,DCU,1,1:;",
        "hami.io/kunlun-allocated": "XPU-a,kunlun,1,1:;",
        "hami.io/devices-to-allocate": "GPU-flat,NVIDIA,1,1:",
        "hami.io/device-allocated": "nvidia-gpu-0,nvidia-gpu-1",
    }
    assert {part["uuid"] for part in read_allocations(annotations)} == {"GPU-a", "DCU-a", "XPU-a"}
    flat = {key: value for key, value in annotations.items() if key.startswith("hami.io/device")}
    assert [part["uuid"] for part in read_allocations(flat)] == ["GPU-flat"]


def a_node(**annotations: str) -> dict[str, Any]:
    return {"metadata": {"name": "gpu-07", "annotations": {f"hami.io/{k}": text for k, text in annotations.items()}}}


def test_a_node_that_reports_is_well():
    told = {"node-nvidia-register": CARD, "node-handshake-nvidia": "Reported 2026-08-21 10:00:05"}
    node = read_node(a_node(**told), NOW + FRESH)
    assert [device["uuid"] for device in node["devices"]] == ["GPU-a"]
    assert node["problems"] == []


def test_a_node_without_registration_is_told():
    (problem,) = read_node({"metadata": {"name": "gpu-07"}}, NOW)["problems"]
    assert problem.startswith("gpu-07: no device is registered, expected an annotation such as hami.io/node-nvidia-reg")


@pytest.mark.parametrize(
    ("handshake", "start"),
    [
        ("Reported 2026-08-21 10:00:04", "the nvidia device plugin last reported 5 minutes ago, expected within 5"),
        ("Reported 2026-08-21 08:00:05", "the nvidia device plugin last reported 125 minutes ago, expected within 5"),
        ("Requesting_2026-08-21 10:00:04", "the nvidia device plugin was asked for a report 5 minutes ago, expected"),
        ("Reported sometime", "the handshake of the nvidia device plugin has no time that can be read"),
        ("Deleted_2026-08-21 10:00:05", "the scheduler has given the nvidia device plugin up"),
    ],
)
def test_a_handshake_older_than_five_minutes_is_told(handshake: str, start: str):
    told = {"node-nvidia-register": CARD, "node-handshake-nvidia": handshake}
    (problem,) = read_node(a_node(**told), NOW + FRESH)["problems"]
    assert problem.startswith(f"gpu-07: {start}")
    assert problem.endswith("; read its logs: kubectl logs -n kube-system DEVICE-PLUGIN-POD")


def test_a_part_counts_for_each_container_that_holds_it():
    info = read_pod(a_pod(node="gpu-07", vgpu_devices_allocated="GPU-a,NVIDIA,1000,10:;GPU-a,NVIDIA,500,10:;"))
    assert _memory_in_use([info, {**info, "phase": "Succeeded"}]) == {"GPU-a": 1500}


def a_pod(*, node: str = "", status: dict[str, Any] | None = None, **annotations: str) -> dict[str, Any]:
    notes = {f"hami.io/{key.replace('_', '-')}": text for key, text in annotations.items()}
    metadata = {"name": "train", "namespace": "default", "annotations": notes}
    return {"metadata": metadata, "spec": {"nodeName": node}, "status": {"phase": "Pending", **(status or {})}}


def test_a_pod_that_was_decided_tells_node_time_and_cards():
    info = read_pod(a_pod(vgpu_node="gpu-07", vgpu_time="1787306405", devices_to_allocate="GPU-a,NVIDIA,3000,30:"))
    assert (info["node"], info["scheduled_at"], info["problem"]) == ("gpu-07", NOW, None)
    assert info["allocated_devices"][0]["memory_mb"] == 3000


@pytest.mark.parametrize("unix", ["", "soon", "²", "9" * 30])
def test_a_time_of_decision_that_cannot_be_read_is_none(unix: str):
    assert read_pod(a_pod(node="gpu-07", vgpu_time=unix))["scheduled_at"] is None


def test_an_allocation_that_cannot_be_read_is_told_and_hides_nothing_else():
    info = read_pod(a_pod(node="gpu-07", devices_to_allocate="GPU-a,NVIDIA:"))
    assert (info["node"], info["allocated_devices"]) == ("gpu-07", [])
    assert info["problem"] == 'default/train: card "GPU-a,NVIDIA" is not UUID,type,memory,cores'


def test_a_pod_that_was_refused_tells_the_reason():
    message = "0/2 nodes are available: 2 too small. preemption: 0/2 nodes are available: 2 No victims found."
    said = {"type": "PodScheduled", "status": "False", "message": message}
    problem = read_pod(a_pod(status={"conditions": [said]}))["problem"]
    assert problem
    assert problem.startswith("default/train is pending: 0/2 nodes are available: 2 too small; ask for less")
    ready = {**said, "status": "True"}
    assert message[:9] not in str(read_pod(a_pod(status={"conditions": [ready]}))["problem"])


def test_a_pod_that_nobody_looked_at_leads_to_the_scheduler_s_log():
    problem = read_pod(a_pod())["problem"]
    assert problem
    assert "no scheduler has decided about it yet" in problem
    assert problem.endswith("kubectl logs -n kube-system deployment/hami-scheduler")


def test_five_minutes_are_what_the_guide_says():
    assert timedelta(minutes=5) == FRESH
