"""MIG slices: what the scheduler writes, and what the agent adds."""

import pytest

from tessera.errors import InvalidAnnotation
from tessera.model.annotations.mig import MigAllocation, MigInstance, decode_mig_allocations, encode_mig_allocations
from tessera.model.devices import MigPlacement

WHERE = "pod default/p: hami.io/vgpu-mig-allocations"
PLANNED = MigAllocation(container=0, device=1, gpu_uuid="GPU-a", profile="2g.10gb", placement=MigPlacement(2, 2))
WRITTEN = '{"containerIndex":0,"deviceIndex":1,"gpuUUID":"GPU-a","profile":"2g.10gb","placement":{"start":2,"size":2}'


def test_a_planned_slice_has_five_fields_and_a_real_one_eight():
    made = MigAllocation(
        container=0,
        device=1,
        gpu_uuid="GPU-a",
        profile="2g.10gb",
        placement=MigPlacement(2, 2),
        instance=MigInstance("MIG-c", 4, 0),
    )
    assert encode_mig_allocations([PLANNED]) == f"[{WRITTEN}}}]"
    assert encode_mig_allocations([made]) == f'[{WRITTEN},"migUUID":"MIG-c","gpuInstanceID":4,"computeInstanceID":0}}]'
    assert decode_mig_allocations(encode_mig_allocations([PLANNED, made]), WHERE) == (PLANNED, made)


@pytest.mark.parametrize("text", ["", "null", "[]"])
def test_there_may_be_no_slices(text: str):
    assert decode_mig_allocations(text, WHERE) == ()


def test_an_instance_with_half_its_identities_is_refused():
    with pytest.raises(InvalidAnnotation) as error:
        decode_mig_allocations(f'[{WRITTEN},"migUUID":"MIG-c","computeInstanceID":0}}]', WHERE)
    assert str(error.value) == (
        f"{WHERE} slice 0 has only migUUID and computeInstanceID, expected migUUID, gpuInstanceID, computeInstanceID"
    )


def test_a_slice_without_a_card_is_refused():
    with pytest.raises(InvalidAnnotation) as error:
        decode_mig_allocations('[{"profile":"1g.5gb"}]', WHERE)
    assert str(error.value) == f"{WHERE} slice 0: gpuUUID is missing, expected a text"
