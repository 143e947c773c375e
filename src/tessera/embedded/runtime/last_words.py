"""The last words of a container: what it wrote to the file that is there for them, told when it has ended.

Where it asks for that, the end of its log takes their place after a failure. Both are as short as a kubelet has them.
"""

from pathlib import Path

from tessera.embedded.documents import Frozen
from tessera.embedded.runtime.logs import LogRequest, read_log
from tessera.embedded.runtime.namespaces import Shown

USUAL_PATH = "/dev/termination-log"
MOST_BYTES = 4096
END_OF_LOG, MOST_BYTES_OF_LOG = LogRequest(tail_lines=80), 2048


def lay_out(file: Path, container: Frozen) -> Shown:
    """Empty at each start, and for whoever the container's processes are."""
    file.write_bytes(b"")
    file.chmod(0o666)
    return Shown(str(file), container.get("terminationMessagePath") or USUAL_PATH)


async def read_last_words(file: Path, log: Path, container: Frozen, exit_code: int) -> str:
    words = file.read_bytes()[:MOST_BYTES] if file.exists() else b""
    if not words and exit_code and container.get("terminationMessagePolicy") == "FallbackToLogsOnError":
        words = b"".join([piece async for piece in read_log(log, END_OF_LOG)])[-MOST_BYTES_OF_LOG:]
    return words.decode(errors="replace")
