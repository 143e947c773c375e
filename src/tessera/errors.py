"""Every error a user can meet, in one tree.

TesseraError
├── InvalidInput          something written by a person or a peer cannot be used
│   ├── InvalidQuantity   a number with a unit
│   ├── InvalidRequest    what a pod asks for
│   ├── InvalidAnnotation what a node or pod annotation says
│   ├── InvalidInventory  what a node reports about its cards
│   ├── InvalidCatalogue  a vendor file
│   ├── InvalidPolicy     a scheduling policy or its weights
│   └── InvalidTrace      a trace file or a simulation option
├── DiscoveryFailed       the hardware or its driver did not answer
├── SimulationFailed      the machine did not let a simulation end
└── LedgerConflict        the ledger was asked for what would over-commit or contradict it

The message is one sentence: what failed, on which object, with which value, what was expected, what to do.
`code` is stable; programs match on it, people read the sentence.
"""

from typing import ClassVar


class TesseraError(Exception):
    code: ClassVar[str] = "Error"


class InvalidInput(TesseraError):
    code = "InvalidInput"


class InvalidQuantity(InvalidInput):
    code = "InvalidQuantity"


class InvalidRequest(InvalidInput):
    code = "InvalidRequest"


class InvalidAnnotation(InvalidInput):
    code = "InvalidAnnotation"


class InvalidInventory(InvalidInput):
    code = "InvalidInventory"


class InvalidCatalogue(InvalidInput):
    code = "InvalidCatalogue"


class InvalidPolicy(InvalidInput):
    code = "InvalidPolicy"


class InvalidTrace(InvalidInput):
    code = "InvalidTrace"


class DiscoveryFailed(TesseraError):
    code = "DiscoveryFailed"


class SimulationFailed(TesseraError):
    code = "SimulationFailed"


class LedgerConflict(TesseraError):
    code = "LedgerConflict"
