"""Whether a node's container runtime can be told late what a container gets: whether it has CDI, and has it on."""

import re
from typing import Literal

CdiChoice = Literal["auto", "on", "off"]
# The first versions that have CDI switched on by default. containerd 1.7 has it too, switched off and without a word.
ON_SINCE = {"containerd": (2, 0), "cri-o": (1, 23)}

NO_CDI = "NoContainerDeviceInterface"
ADVICE = (
    "The container runtime is not known to have CDI on, so pods that could be mistaken for each other start one"
    " after the other; upgrade to containerd 2 or CRI-O 1.23, or switch CDI on and run the agent with --cdi=on."
)


def binds_late(choice: CdiChoice, runtime: str) -> bool:
    """`runtime` as a Node tells it, such as `containerd://2.1.4`."""
    if choice != "auto":
        return choice == "on"
    found = re.match(r"v?(\d+)\.(\d+)", runtime.partition("://")[2])
    since = ON_SINCE.get(runtime.partition("://")[0])
    return bool(found and since and (int(found[1]), int(found[2])) >= since)
