"""What the node's agent reads of a container is what the library in it wrote: both know one layout."""

import re
from pathlib import Path

from tessera.node import regions
from tessera.node.regions import read_region
from tests.native.machines import CONTEXT_MIB, MIB, ROOT, Container, end, first_lines

HEADER = ROOT / "native/lib/region_file.h"
OUT_OF_MEMORY = 2


def region_of(container: Container) -> regions.Region:
    region = read_region(Path(container.environment["TESSERA_REGION"]))
    assert region
    return region


def test_the_agent_sees_what_living_processes_hold_and_what_they_were_refused(container: Container):
    container.limit(2_000)
    with container.start("print(alloc(1_000), flush=True); input()") as program:
        assert first_lines([program]) == ["0"]
        assert container.run("print(alloc(1_500))") == str(OUT_OF_MEMORY)
        region = region_of(container)
        (card,) = region.cards
        assert card.uuid == container.machine.uuids[0]
        assert 1_000 + CONTEXT_MIB <= card.used_bytes / MIB < 1_000 + 2 * CONTEXT_MIB
        assert (card.limit_bytes, card.refusals) == (2_000 * MIB, 1)
        assert [process.pid for process in region.processes] == [program.pid]
        end([program])
    assert region_of(container).processes == (), "whoever was killed is not counted"
    assert region_of(container).cards[0].used_bytes == 0


def test_the_agent_lists_who_is_on_a_card_by_the_driver_also_without_the_library(container: Container):
    ask = "from tessera.vendors.nvml_watching import NvmlWatch; print(NvmlWatch().processes())"
    machine = container.machine
    with machine.start("print(alloc(1_000), flush=True); input()") as program:
        assert first_lines([program]) == ["0"]
        listed = machine.run(ask)
        end([program])
    expected = f"CardProcess(pid={program.pid}, memory_bytes={(1_000 + CONTEXT_MIB) * MIB})"
    assert f"'{machine.uuids[0]}': ({expected},)" in listed
    assert f"'{machine.uuids[1]}': ()" in listed


def test_the_agent_and_the_library_mean_the_same_version():
    defined = dict(re.findall(r"#define REGION_(\w+) (\w+)", HEADER.read_text()))
    assert int(defined["MAGIC"].rstrip("u"), 16) == regions.MAGIC
    assert int(defined["VERSION"]) == regions.VERSION
    assert (int(defined["CARDS"]), int(defined["SLOTS"])) == (regions.MOST_CARDS, regions.MOST_SLOTS)
