"""An engine that goes on when the command that started it has returned.

The two talk through a pipe and a piece of memory: what the engine says before it is ready must come through on a full
disk too. Afterwards it speaks into a file.
"""

import os
import subprocess
import sys

from tessera.apps.state_directory import EngineSettings, StateDirectory
from tessera.errors import NotReady

READY = b"ready"
STDOUT, STDERR = 1, 2


def start_detached(directory: StateDirectory, settings: EngineSettings, port: int) -> None:
    """Returns when it is ready. Raises NotReady with its own sentence, if it does not come up."""
    reading, writing = os.pipe()
    said = os.memfd_create("tessera-up")
    command = [sys.executable, "-m", "tessera.apps.cli", "up", *_options(directory, settings, port)]
    process = subprocess.Popen(
        [*command, "--ready-fd", str(writing)],
        stdin=subprocess.DEVNULL,
        stdout=said,
        stderr=said,
        pass_fds=(writing,),
        start_new_session=True,
    )
    os.close(writing)
    try:
        with open(reading, "rb") as pipe:
            answer = pipe.read()
    except KeyboardInterrupt:
        process.terminate()
        raise
    if answer != READY:
        process.wait()
        raise NotReady(_last_line(said) or f"the engine ended without a word; see {directory.path / 'logs'}")


def tell_ready(directory: StateDirectory, ready_fd: int) -> None:
    """Said by the engine to whoever started it; nobody hears it any more afterwards."""
    try:
        output = os.open(directory.path / "logs" / "output.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError:
        output = os.open(os.devnull, os.O_WRONLY)
    for standard in (STDOUT, STDERR):
        os.dup2(output, standard)
    os.close(output)
    os.write(ready_fd, READY)
    os.close(ready_fd)


def _options(directory: StateDirectory, settings: EngineSettings, port: int) -> list[str]:
    cards = ["--cards-file", settings.cards_file] if settings.cards_file else ["--cards", settings.cards]
    chosen = [] if settings.has_real_cards else cards
    chosen += ["--scheduler-config", settings.scheduler_config]
    chosen += ["--cores-policy", settings.cores_policy, "--spill-percent", str(settings.spill_percent)]
    return ["--nodes", str(settings.nodes), *chosen, "--state-dir", str(directory.path), "--port", str(port)]


def _last_line(said: int) -> str:
    lines = os.pread(said, 64 * 1024, 0).decode(errors="replace").split("\n")
    words = [line for line in lines if line.strip()]
    return words[-1].removeprefix("tessera: ") if words else ""
