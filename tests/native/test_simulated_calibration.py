"""The simulated driver answers as a card does: the same program asks both, and what they say is kept as text.

`simulated.txt` is what it says here. `h200.txt` is what it said to the driver of an H200; each line in which the two
differ is known, with a reason.
"""

from pathlib import Path

from tests.native.machines import PATIENCE_S, PROBES

KEPT = Path(__file__).parent / "calibration"
SIMULATED, H200 = KEPT / "simulated.txt", KEPT / "h200.txt"
DIFFERENCES = {
    "cuCtxGetDevice in CUDA 13.0": "entries that came with CUDA 13 are not simulated",
    "cuCtxSynchronize in CUDA 13.0": "entries that came with CUDA 13 are not simulated",
    "cuStreamGetCtx in CUDA 13.0": "entries that came with CUDA 13 are not simulated",
    "graph with 3, 3 and 40 MiB": "of what is reserved for a graph the driver calls a part unused",
    "memory by handle after its file is left": "a file that was exported is not noticed when it is closed",
    "own pool after a free and a trim": "the driver counts what was freed as used for a while",
    "own pool after a wait": "the driver counts what was freed as used for a while",
}
"""What a card answers otherwise, by the name of the line, and why that is left so."""


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
    assert {name for name in card if card[name] != simulated.get(name)} == set(DIFFERENCES)
    assert simulated.keys() <= card.keys()
