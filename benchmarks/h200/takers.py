"""One process that takes memory by PyTorch until it is refused: `python -m benchmarks.h200.takers`.

It answers each line of its input with a line of JSON: what it took, and how the refusal looked to the program.
"""

import json
import sys
import time
from importlib import import_module
from typing import Any

MIB = 1 << 20
MOST_MIB = 12 << 10
"""Asked for at most, so that a cap that does not hold is seen and the card is not filled."""


class Taker:
    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._kept: list[Any] = []
        torch.cuda.init()
        torch.zeros(1, device="cuda")
        torch.cuda.synchronize()

    def obey(self, order: dict[str, Any]) -> dict[str, Any]:
        if order.get("give_back"):
            return self.give_back()
        return self.fill(order["steps_mib"])

    def fill(self, steps_mib: list[int]) -> dict[str, Any]:
        """Large steps first and small ones into what is left."""
        answer: dict[str, Any] = {"taken_mib": 0}
        for step in steps_mib:
            while answer["taken_mib"] < MOST_MIB:
                try:
                    self._kept.append(self._torch.empty(step * MIB, dtype=self._torch.uint8, device="cuda"))
                except RuntimeError as refusal:
                    answer |= {"refusal": type(refusal).__name__, "says": str(refusal)[:200]}
                    break
                answer["taken_mib"] += step
        self._torch.cuda.synchronize()
        return answer | {"reserved_mib": self._torch.cuda.memory_reserved() / MIB, "view_mib": self.view()}

    def give_back(self) -> dict[str, Any]:
        """Whether a refused program can go on: everything freed, and a part of it asked for again."""
        self._kept.clear()
        self._torch.cuda.empty_cache()
        try:
            again = self._torch.ones(1024 * MIB, dtype=self._torch.uint8, device="cuda")
            return {"is_usable_again": int(again[::MIB].sum()) == 1024}
        except RuntimeError as refusal:
            return {"is_usable_again": False, "says": str(refusal)[:200]}

    def view(self) -> list[float]:
        free, total = self._torch.cuda.mem_get_info()
        return [free / MIB, total / MIB]


def main() -> None:
    torch = import_module("torch")
    print(json.dumps({"ready": "taker"}), flush=True)
    sys.stdin.readline()
    began = time.monotonic()
    taker = Taker(torch)
    print(json.dumps({"set_up_s": time.monotonic() - began, "view_mib": taker.view()}), flush=True)
    for line in sys.stdin:
        print(json.dumps(taker.obey(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
