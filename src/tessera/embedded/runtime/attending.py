"""What is done around one run of a container: hooks after its start and before its end, and its probes."""

import asyncio
from collections.abc import Callable

from tessera.embedded.documents import Frozen
from tessera.embedded.runtime.parts import part
from tessera.embedded.runtime.probes import Checker, watch
from tessera.embedded.runtime.sources import Event, Tell
from tessera.errors import TesseraError

HOOK_S = 600.0
"""Kubernetes sets no limit for the hook after the start; a container whose hook hangs is not ready until then."""


class Attendant:
    """`on_started` and `on_ready` hear what the probes found, `kill` ends a container that failed them."""

    def __init__(
        self,
        spec: Frozen,
        checker: Checker,
        *,
        tell: Tell,
        on_started: Callable[[], None],
        on_ready: Callable[[bool], None],
        kill: Callable[[], None],
    ) -> None:
        self._spec = spec
        self._checker = checker
        self._tell = tell
        self._on_started = on_started
        self._on_ready = on_ready
        self._kill = kill

    async def attend(self) -> None:
        """For as long as the container runs; cancelled when it ends."""
        if not await self.run_hook("postStart", HOOK_S):
            self._kill()
            return
        await self._until_started()
        self._on_started()
        if "readinessProbe" not in self._spec:
            self._on_ready(True)
        alive = self._watch("livenessProbe", self._hear_life)
        await asyncio.gather(alive, self._watch("readinessProbe", self._on_ready))

    async def run_hook(self, name: str, within_s: float) -> bool:
        """Whether it went well; also when there is none."""
        hook = part(self._spec, "lifecycle", name)
        if not hook:
            return True
        try:
            async with asyncio.timeout(within_s):
                why = await self._checker.ask(hook, within_s)
        except TimeoutError:
            why = f"not over within {within_s:g} s"
        except (OSError, TesseraError) as error:
            why = str(error)
        if why:
            reason = f"Failed{name[0].upper()}{name[1:]}Hook"
            self._tell(Event("Warning", reason, f"container {self._spec['name']}: {why}"))
        return not why

    async def _until_started(self) -> None:
        passed = asyncio.Event()

        def hear(verdict: bool) -> None:
            if verdict:
                passed.set()
            else:
                self._end("startup")

        if "startupProbe" in self._spec:
            watching = asyncio.ensure_future(self._watch("startupProbe", hear))
            try:
                await passed.wait()
            finally:
                watching.cancel()

    async def _watch(self, name: str, hear: Callable[[bool], None]) -> None:
        probe: Frozen | None = self._spec.get(name)
        if probe is None:
            return
        kind = name.removesuffix("Probe")

        async def check() -> bool:
            why = await self._checker.check(probe)
            if why:
                self._tell(Event("Warning", "Unhealthy", f"{kind.capitalize()} probe failed: {why}"))
            return not why

        await watch(probe, check, hear)

    def _hear_life(self, verdict: bool) -> None:
        if not verdict:
            self._end("liveness")

    def _end(self, kind: str) -> None:
        self._tell(Event("Normal", "Killing", f"Container {self._spec['name']} failed {kind} probe, will be restarted"))
        self._kill()
