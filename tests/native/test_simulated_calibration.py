"""The simulated driver answers as a card does: the same program asks both, and what they say is kept as text.

`simulated.txt` is what it says here. `h200.txt` is what it said to the driver of an H200; each line in which the two
differ is known, with a reason.
"""

from pathlib import Path

from tests.native.machines import PATIENCE_S, PROBES

KEPT = Path(__file__).parent / "calibration"
SIMULATED, H200 = KEPT / "simulated.txt", KEPT / "h200.txt"
DIFFERENCES = {
    "memory by handle after its file is left": "a file that was exported is not noticed when it is closed",
    "own pool after a free and a trim": "the driver counts what was freed as used for a while",
}
"""What a card answers otherwise, by the name of the line, and why that is left so."""
NOT_ASKED = {
    "alloc after a failure",
    "cuLaunchKernel in CUDA 7.0",
    "cuMemcpy2D in CUDA 3.2",
    "cuMemcpy2DAsync in CUDA 3.2",
    "cuMemcpy2DUnaligned in CUDA 3.2",
    "cuMemcpy3D in CUDA 3.2",
    "cuMemcpy3DAsync in CUDA 3.2",
    "cuMemcpyHtoD in CUDA 7.0",
    "cuMemcpyHtoDAsync in CUDA 7.0",
    "cuMemsetD8 in CUDA 7.0",
    "cuMemsetD8Async in CUDA 7.0",
    "event after a failure",
    "function after a failure",
    "graph with 3, 3 and 40 MiB",
    "launch after a failure",
    "look at memory after a failure",
    "memory by handle of which nothing is left",
    "module loaded and kept beside a capture",
    "module unloaded beside a capture",
    "own pool after a wait",
    "wait for all after a failure",
}
"""What the card was not asked."""
CUT_SHORT = "the rest of this part"
"""Says that the program ended early, and nothing of the driver."""


def answers(text: str) -> dict[str, list[str]]:
    """By the name of the line; a name may come more than once."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, _, answer = line.partition(": ")
        found.setdefault(name, []).append(answer)
    return found


def test_the_simulated_driver_answers_as_it_did(machine):
    with machine.execute([str(PROBES / "calibrate")]) as program:
        said, _ = program.communicate(timeout=PATIENCE_S)
    assert said.splitlines() == SIMULATED.read_text().splitlines()


def test_it_answers_as_a_card_does():
    card, simulated = answers(H200.read_text()), answers(SIMULATED.read_text())
    card.pop(CUT_SHORT, None)
    assert {name for name in card if card[name] != simulated.get(name)} == set(DIFFERENCES)
    assert simulated.keys() - card.keys() <= NOT_ASKED
