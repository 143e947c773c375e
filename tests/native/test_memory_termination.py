"""A tile may want its container to end where it would be refused memory: with a sentence and all its processes."""

import signal

import pytest

from tests.native.machines import CONTEXT_MIB, PATIENCE_S, TAKER, end, first_lines, require_namespaces

LIMIT_MIB = 2_000
ROOM_MIB = LIMIT_MIB - CONTEXT_MIB
OUT_OF_MEMORY = 2


@pytest.fixture
def container(container):
    container.limit(LIMIT_MIB)
    container.write(container.limits.read_text() + "on_refusal terminate\n")
    return container


def sentence(container, held_mib, asked_mib):
    return (
        f"{container.machine.uuids[0]}: the container holds {held_mib} MiB of its {LIMIT_MIB} MiB and asked for"
        f" {asked_mib} MiB more, so it ends; ask for more memory of the card, or take less"
    )


def test_whoever_is_refused_says_why_and_ends_with_all_processes_that_use_the_card(container, tmp_path):
    log = tmp_path / "termination-log"
    log.write_text("")
    with container.taker("one", 100) as other, container.start("print(alloc(2))\ninput()") as third:
        assert first_lines([other, third]) == ["100", "0"]
        with container.taker("fill", 200, TESSERA_TERMINATION_LOG=str(log)) as program:
            said = program.communicate(timeout=PATIENCE_S)[0]
        codes = [one.wait(PATIENCE_S) for one in (program, other, third)]
    held = 3 * CONTEXT_MIB + 100 + 2 + (LIMIT_MIB - 3 * CONTEXT_MIB - 102) // 200 * 200
    assert codes == [-signal.SIGKILL] * 3
    assert said == f"tessera: {sentence(container, held, 200)}\n"
    assert log.read_text() == sentence(container, held, 200)


def test_processes_without_the_card_and_of_other_containers_live_on(container, machine):
    with (
        container.machine.execute(["/bin/cat"], **container.environment) as bystander,
        machine.start("print(alloc(2), flush=True)\ninput()") as neighbour,
    ):
        assert first_lines([neighbour]) == ["0"]
        with container.taker("fill", 200, TESSERA_TERMINATION_LOG="/nowhere/log") as program:
            program.communicate(timeout=PATIENCE_S)
        assert program.returncode == -signal.SIGKILL
        assert (bystander.poll(), neighbour.poll()) == (None, None)
        end([bystander, neighbour])


def test_a_number_that_is_of_another_namespace_ends_nobody_here(container):
    """The other's slot says 2, and here that is somebody else: the second process of this namespace."""
    require_namespaces()
    nested = ["unshare", "--pid", "--fork", "--mount-proc"]
    holder = [*nested, "/bin/sh", "-c", f"{TAKER} dlsym one 100; true"]
    filler = (
        f"sleep 60 & {TAKER} dlsym fill 200 > /dev/null 2>&1; grep -q zombie /proc/$!/status || echo $! lived; kill $!"
    )
    with container.machine.execute(holder, **container.environment) as program:
        assert first_lines([program]) == ["100"]
        with container.machine.execute([*nested, "/bin/sh", "-c", filler], **container.environment) as other:
            assert other.communicate(timeout=PATIENCE_S)[0].endswith("2 lived\n")
        assert program.poll() is None
        end([program])


def test_the_variable_of_hami_ends_containers_too(container):
    container.limits.unlink()
    variables = {"CUDA_DEVICE_MEMORY_LIMIT": "1000m", "ACTIVE_OOM_KILLER": "1"}
    with container.taker("fill", 100, **variables) as program:
        assert "asked for 100 MiB more, so it ends" in program.communicate(timeout=PATIENCE_S)[0]
    assert program.returncode == -signal.SIGKILL


@pytest.mark.parametrize("line", ["on_refusal refuse\n", "on_refusal perhaps\n", ""])
def test_nobody_is_ended_unless_the_tile_says_so(container, line):
    container.limit(LIMIT_MIB)
    container.write(container.limits.read_text() + line)
    assert container.filled_mib(200) == ROOM_MIB // 200 * 200


def test_what_can_be_let_go_of_or_spilled_is_no_refusal(container):
    container.write(container.limits.read_text().replace("cores_percent 0", "spill_mib 400"))
    script = """
from tests.native.taking import *
assert cuda.init() == cuda.enter() == 0
stream_ordered(1_000 * MIB)[1]()
print(alloc(1_600 * MIB)[0], alloc(400 * MIB)[0])
"""
    assert container.run(script) == "0 0"
