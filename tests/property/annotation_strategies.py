"""Values that annotations carry, awkward but legal ones included."""

from datetime import UTC, datetime

from hypothesis import strategies as st

from tessera.model.allocations import Allocation, CardShare
from tessera.model.devices import Device, MigPlacement, MigProfile

LARGEST = 2**31 - 1

numbers = st.integers(0, LARGEST) | st.sampled_from([0, 1, 100, 40960, 81920, LARGEST])
small = st.integers(0, 200)
# Everything that UTF-8 can hold and no form would trim: quotes, backslashes, control characters, other scripts.
any_text = st.text(st.characters(codec="utf-8"), max_size=20).filter(lambda text: text == text.strip())
# In the text forms "," ":" ";" and "[" part things.
plain_text = any_text.map(lambda text: "".join(c for c in text if c not in ",:;[{").strip())
vendors = st.sampled_from(["NVIDIA", "DCU", "Metax-SGPU", "Ascend910B4-1"])
uuids = st.one_of(
    st.uuids().map(lambda uuid: f"GPU-{uuid}"),
    plain_text.filter(bool),
    st.sampled_from(["0", "GPU é漢]", 'GPU-"quoted"', "node-mthreads-0", "a=b|c/d\\e'f"]),
)
node_names = st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?", fullmatch=True)
moments = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29)).map(lambda at: at.replace(microsecond=0, tzinfo=UTC))
placements = st.builds(MigPlacement, numbers, numbers)
profiles = st.builds(
    MigProfile,
    name=any_text,
    memory_mib=numbers,
    cores_percent=numbers,
    slices=numbers,
    placements=st.lists(placements, max_size=3).map(tuple),
)


def devices(texts: st.SearchStrategy[str]) -> st.SearchStrategy[list[Device]]:
    """The cards of one node, with models and modes of such texts."""
    card = st.builds(
        Device,
        uuid=uuids,
        index=numbers,
        vendor=st.just("NVIDIA"),
        model=texts,
        slots=numbers,
        memory_mib=numbers,
        cores_percent=numbers,
        numa=numbers,
        island=any_text,
        healthy=st.booleans(),
        mode=texts.filter(bool),
        mig_profiles=st.lists(profiles, max_size=2).map(tuple),
        network_id=numbers,
    )
    return st.lists(card, max_size=4, unique_by=lambda device: device.uuid)


shares = st.builds(CardShare, uuid=uuids, vendor=vendors, memory_mib=numbers, cores_percent=numbers)
containers = st.lists(st.lists(shares, max_size=3).map(tuple), max_size=4).map(tuple)
allocations = st.builds(Allocation, node_names, containers)
