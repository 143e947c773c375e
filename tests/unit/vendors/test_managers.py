"""What a container is given: environment, mounts and device files, for every vendor from its file alone."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tessera.errors import DiscoveryFailed
from tessera.model.allocations import CardShare
from tessera.model.pods import read_pod_request
from tessera.model.requests import PodRef
from tessera.vendors.loading import load_catalogue
from tessera.vendors.managers import CataloguedManager, DeviceManager
from tessera.vendors.rendering import AllocationRequest, ContainerEdits, Mount
from tessera.vendors.rules import RULES, refine
from tessera.vendors.simulated import SimulatedBackend, parse_plan, simulate

CATALOGUE = load_catalogue()
POD = PodRef("default", "train-0", "uid-1")


LIBRARY = "/usr/lib/hami-core.so"
GUARD = "/run/tessera/lib/libtessera.so"


def without_ours(path: str) -> bool:
    """A host that has HAMi's library and not ours."""
    return "/tessera/" not in path


def manager_of(
    vendor_name: str, description: str, catalogue=CATALOGUE, exists: Callable[[str], bool] = lambda _: True
) -> CataloguedManager:
    vendor = catalogue.by_name(vendor_name)
    assert vendor
    backend = SimulatedBackend(simulate("n1", parse_plan(description), catalogue), vendor)
    return CataloguedManager(vendor, backend, exists)


def give(manager: CataloguedManager, *parts: tuple[int, int, int], **options) -> ContainerEdits:
    """Parts are (index, memory in MiB, percent of cores)."""
    devices = manager.discover()
    shares = tuple(
        CardShare(uuid=devices[index].uuid, vendor=devices[index].vendor, memory_mib=memory, cores_percent=cores)
        for index, memory, cores in parts
    )
    return manager.allocate(AllocationRequest(pod=POD, container="main", shares=shares, node="n1", **options))


def test_nvidia_containers_get_what_hami_gives_them():
    manager = manager_of("NVIDIA", "4xA100-SXM4-80GB", exists=without_ours)
    edits = give(manager, (2, 3000, 30), (0, 4000, 30), priority=1)
    uuids = [device.uuid for device in manager.discover()]
    assert edits.environment == {
        "NVIDIA_VISIBLE_DEVICES": f"{uuids[2]},{uuids[0]}",
        "CUDA_DEVICE_MEMORY_LIMIT_0": "3000m",
        "CUDA_DEVICE_MEMORY_LIMIT_1": "4000m",
        "CUDA_DEVICE_SM_LIMIT": "30",
        "CUDA_TASK_PRIORITY": "1",
        "CUDA_DEVICE_MEMORY_SHARED_CACHE": "/usr/local/vgpu/uid-1_main.cache",
        "LD_PRELOAD": LIBRARY,
    }
    assert edits.mounts == (
        Mount(LIBRARY, LIBRARY, True),
        Mount("/usr/local/vgpu/libvgpu.so", "/usr/local/vgpu/libvgpu.so", True),
        Mount("/usr/local/vgpu", "/usr/local/vgpu/containers/uid-1_main", False),
        Mount("/tmp/vgpulock", "/usr/local/vgpu/lock", False),
        Mount("/etc/ld.so.preload", "/usr/local/vgpu/ld.so.preload", True),
    )


def test_nvidia_containers_get_our_library_in_the_place_of_hamis_where_the_host_has_it():
    manager = manager_of("NVIDIA", "2xT4")
    edits = give(manager, (1, 3000, 30), (0, 3000, 30), hook_path="/opt", run_path="/run/here")
    first, second = (device.uuid for device in manager.discover())
    assert edits.environment["TESSERA_REGION"] == "/run/tessera/tile/region"
    assert not {"LD_PRELOAD", "CUDA_DEVICE_MEMORY_SHARED_CACHE"} & edits.environment.keys()
    assert edits.mounts == (
        Mount(GUARD, "/opt/tessera/libtessera.so", True),
        Mount("/etc/ld.so.preload", "/opt/tessera/ld.so.preload", True),
        Mount("/run/tessera/tile/region", "/run/here/tiles/uid-1_main/region", False, is_file=True),
        Mount(f"/run/tessera/cards/{second}", f"/run/here/cards/{second}", False, is_file=True),
        Mount(f"/run/tessera/cards/{first}", f"/run/here/cards/{first}", False, is_file=True),
        Mount("/run/tessera/agent", "/run/here/agent", True),
    )


def test_containers_with_claimed_cards_name_them_for_cuda_and_are_not_limited_where_nothing_says_so():
    manager = manager_of("NVIDIA", "4xT4")
    edits = give(manager, (2, 0, 0), (3, 0, 0), claimed=True)
    third, fourth = (device.uuid for device in manager.discover()[2:])
    assert edits.environment["CUDA_VISIBLE_DEVICES"] == f"{third},{fourth}"
    assert not [name for name in edits.environment if name.startswith("CUDA_DEVICE_MEMORY_LIMIT")]


def test_libraries_are_taken_from_where_the_site_put_them():
    manager = manager_of("NVIDIA", "1xT4", exists=lambda path: path != LIBRARY and without_ours(path))
    edits = give(manager, (0, 3000, 30), hook_path="/opt/site")
    assert edits.mounts[:2] == (
        Mount(LIBRARY, "/opt/site/vgpu/libvgpu.so", True),
        Mount("/usr/local/vgpu/libvgpu.so", "/opt/site/vgpu/libvgpu.so", True),
    )
    assert edits.environment["LD_PRELOAD"] == LIBRARY


def test_a_file_that_the_host_does_not_have_is_neither_mounted_nor_preloaded():
    edits = give(manager_of("NVIDIA", "1xT4", exists=lambda _: False), (0, 3000, 30))
    assert "LD_PRELOAD" not in edits.environment, "a program does not start with a library that is not there"
    assert [mount.container_path for mount in edits.mounts] == ["/usr/local/vgpu", "/tmp/vgpulock"]
    assert not any(mount.read_only for mount in edits.mounts), "what containers write is made for them"


def test_an_ascend_slice_names_its_template_and_a_whole_card_does_not():
    manager = manager_of("Ascend910B3", "2xAscend910B3")
    part = give(manager, (1, 16384, 25))
    assert part.environment == {"ASCEND_VISIBLE_DEVICES": "1", "ASCEND_VNPU_SPECS": "vir05_1c_16g"}
    assert part.device_paths == ("/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc", "/dev/davinci1")
    whole = give(manager, (0, 65536, 100), (1, 65536, 100))
    assert whole.environment == {"ASCEND_VISIBLE_DEVICES": "0,1"}
    assert whole.device_paths[3:] == ("/dev/davinci0", "/dev/davinci1")


def test_an_ascend_share_that_is_no_template_is_cut_by_the_library_where_the_host_has_it():
    soft = give(manager_of("Ascend910B3", "2xAscend910B3"), (1, 5000, 25), hook_path="/opt")
    assert soft.environment == {
        "ASCEND_VISIBLE_DEVICES": "1",
        "NPU_MEM_QUOTA": "5000",
        "NPU_PRIORITY": "25",
        "NPU_GLOBAL_SHM_PATH": "/hami-shared-region/1_global_registry",
        "NPU_LOCAL_SHM_PATH": "/hami-vnpu-shmem/vnpu_local_shmem",
    }
    assert soft.mounts == (
        Mount("/hami-vnpu-core/libvnpu.so", "/opt/hami-vnpu-core/libvnpu.so", True),
        Mount("/etc/ld.so.preload", "/opt/hami-vnpu-core/ld.so.preload", True),
        Mount("/hami-vnpu-shmem", "/opt/hami-vnpu-core/containers/uid-1_main", False),
        Mount("/hami-shared-region", "/opt/hami-vnpu-core/shared", False),
    )
    without = give(manager_of("Ascend910B3", "2xAscend910B3", exists=lambda _: False), (1, 5000, 25))
    assert (without.environment, without.mounts) == ({"ASCEND_VISIBLE_DEVICES": "1"}, ())


def test_an_iluvatar_share_is_limited_by_the_vendors_library_and_a_whole_card_is_not():
    manager = manager_of("BI-V150", "2xBI-V150")
    shared = give(manager, (0, 8192, 25), (1, 4096, 25), hook_path="/opt")
    assert shared.environment == {
        "SOL_CONTINER_NAME": "main",
        "CUDA_MEM_LIMIT_0": "8192m",
        "CUDA_MEM_LIMIT_1": "4096m",
        "CUDA_CORE_LIMIT": "25",
        "LD_PRELOAD": "/usr/lib/libvgpu-control.so",
    }
    assert shared.mounts == (Mount("/usr/lib/libvgpu-control.so", "/opt/iluvatar/libvgpu-control.so", True),)
    whole = give(manager, (0, 65536, 100))
    assert (whole.environment, whole.mounts) == ({"SOL_CONTINER_NAME": "main"}, ())


def test_amd_containers_get_a_mask_of_compute_units():
    manager = manager_of("AMD", "2xMI300X")
    environment = give(manager, (0, 8000, 25), (1, 8000, 50)).environment
    assert environment["HSA_CU_MASK"] == "0:0-75;1:0-151"
    assert environment["HIP_DEVICE_MEMORY_LIMIT_1"] == "8000m"
    assert environment["LD_AUDIT"] == "/usr/local/vgpu/libamvgpu.so"
    whole = give(manager, (0, 196592, 100)).environment
    assert list(whole) == ["ROCR_VISIBLE_DEVICES"]


def test_no_cores_asked_for_is_no_limit_on_them():
    assert give(manager_of("AMD", "1xMI300X"), (0, 8000, 0)).environment["HSA_CU_MASK"] == "0:0-303"


def test_a_container_without_cards_is_left_alone():
    assert give(manager_of("NVIDIA", "1xT4")) == ContainerEdits()


def test_a_card_of_another_node_is_refused_by_name():
    manager = manager_of("NVIDIA", "1xT4")
    share = CardShare(uuid="GPU-elsewhere", vendor="NVIDIA", memory_mib=1, cores_percent=1)
    with pytest.raises(
        DiscoveryFailed, match=r'^default/train-0: card "GPU-elsewhere" is not on this node, expected one'
    ):
        manager.allocate(AllocationRequest(pod=POD, container="main", shares=(share,)))


def test_a_card_of_another_vendor_is_refused_by_name():
    share = CardShare(uuid="x", vendor="DCU", memory_mib=1, cores_percent=1)
    with pytest.raises(DiscoveryFailed, match=r'card "x" is of vendor "DCU", expected "NVIDIA"$'):
        manager_of("NVIDIA", "1xT4").allocate(AllocationRequest(pod=POD, container="main", shares=(share,)))


def test_allocating_known_cards_does_not_ask_the_hardware_again():
    class Counting:
        reads = 0

        def read(self):
            self.reads += 1
            return simulate("n1", parse_plan("1xT4"), CATALOGUE)

    vendor = CATALOGUE.by_name("NVIDIA")
    assert vendor
    backend = Counting()
    manager = CataloguedManager(vendor, backend)
    uuid = manager.discover()[0].uuid
    share = CardShare(uuid=uuid, vendor="NVIDIA", memory_mib=1, cores_percent=1)
    for _ in range(3):
        manager.allocate(AllocationRequest(pod=POD, container="main", shares=(share,)))
    assert backend.reads == 1


def test_topology_groups_cards_by_island_and_numa():
    manager = manager_of("NVIDIA", "8xV100-SXM2-16GB")
    topology = manager.topology()
    uuids = tuple(device.uuid for device in manager.discover())
    assert topology.islands == (uuids[:4], uuids[4:])
    assert topology.numa_nodes == ((0, uuids[:4]), (1, uuids[4:]))
    assert len(topology.links) == 28


def test_cards_without_fast_links_are_on_no_island():
    assert manager_of("NVIDIA", "4xT4").topology().islands == ()


@pytest.mark.parametrize("vendor", list(CATALOGUE), ids=lambda vendor: vendor.name)
def test_every_vendor_allocates_from_its_data_alone(vendor):
    manager: DeviceManager = manager_of(vendor.name, f"2x{vendor.models[0].name}")
    shares = tuple(
        CardShare(uuid=device.uuid, vendor=vendor.name, memory_mib=device.memory_mib // 2, cores_percent=50)
        for device in manager.discover()
    )
    edits = manager.allocate(AllocationRequest(pod=POD, container="main", shares=shares))
    rendered = [*edits.environment, *edits.environment.values(), *edits.device_paths]
    assert all("{" not in text for text in rendered)
    assert len(edits.environment) >= (1 if vendor.environment else 0)


def test_the_vendor_of_the_documentation_goes_all_the_way_without_code(tmp_path):
    page = (Path(__file__).parents[3] / "docs" / "adding-a-vendor.md").read_text()
    example = re.search(r"```toml\n(.*?)```", page, re.DOTALL)
    assert example
    (tmp_path / "acme.toml").write_text(example[1])
    catalogue = load_catalogue([tmp_path / "acme.toml"])

    limits = {"acme.com/rocket": "1", "acme.com/rocket-memory": "32", "acme.com/rocket-cores": "4"}
    pod = {
        "metadata": {"name": "train-0", "annotations": {"acme.com/use-type": "rocket"}},
        "spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]},
    }
    (request,) = read_pod_request(pod, catalogue, refine).containers[0].devices
    assert (request.vendor, request.count, request.memory_mib, request.cores_percent) == ("Acme", 1, 8192, 25)
    assert request.selector.use_types == ("rocket",)

    manager = manager_of("Acme", "4xRocket-64", catalogue)
    card = manager.discover()[1]
    assert card.uuid.startswith("ROCKET-")
    assert (card.memory_mib, card.slots) == (65536, 8)
    edits = give(manager, (1, request.memory_on(card.memory_mib), request.cores_percent))
    assert edits.environment == {"ACME_VISIBLE_DEVICES": "1", "ACME_MEMORY_LIMIT_0": "8192M"}
    assert edits.mounts == (Mount("/usr/lib/libacme-control.so", "/usr/local/acme/libacme-control.so", True),)
    assert edits.device_paths == ("/dev/acme_ctl", "/dev/acme1")


def test_the_python_of_the_documentation_runs(tmp_path, monkeypatch, capsys):
    page = (Path(__file__).parents[3] / "docs" / "adding-a-vendor.md").read_text()
    toml, python = (re.findall(rf"```{kind}\n(.*?)```", page, re.DOTALL)[0] for kind in ("toml", "python"))
    (tmp_path / "acme.toml").write_text(toml)
    monkeypatch.chdir(tmp_path)
    exec(compile(python, "adding-a-vendor.md", "exec"), {})
    assert capsys.readouterr().out.count("ROCKET-") == 4


def test_the_documentation_lists_every_rule():
    page = (Path(__file__).parents[3] / "docs" / "adding-a-vendor.md").read_text()
    assert all(f"| `{name}` |" in page for name in RULES)
