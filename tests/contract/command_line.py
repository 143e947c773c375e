"""kubectl and helm as people run them: once, for what they print, or for as long as somebody reads along."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

PATIENCE_S = 60


class CommandLine:
    """One program, run as the administrator unless told another kubeconfig; what it remembers is in `cache`."""

    def __init__(self, program: Path, kubeconfig: Path, cache: Path, *, namespace: str = "default") -> None:
        self._program = program
        self._kubeconfig = kubeconfig
        self._cache = cache
        self._namespace = namespace

    def within(self, namespace: str) -> "CommandLine":
        """The same, where a command that names no namespace means this one; it has still to discover the server."""
        return CommandLine(self._program, self._kubeconfig, self._cache / namespace, namespace=namespace)

    def __call__(self, *arguments: str, input: str | None = None, kubeconfig: Path | None = None) -> str:
        """What it prints; it must end well."""
        done = self._run(arguments, input, kubeconfig)
        assert done.returncode == 0, f"`{self._program.name} {' '.join(arguments)}` failed: {done.stderr}"
        return done.stdout

    def refusal(self, *arguments: str, input: str | None = None, kubeconfig: Path | None = None) -> str:
        """What it complains of; it must not end well."""
        done = self._run(arguments, input, kubeconfig)
        assert done.returncode != 0, (
            f"`{self._program.name} {' '.join(arguments)}` was expected to fail and printed: {done.stdout}"
        )
        return done.stderr

    def negative(self, *arguments: str, input: str | None = None, kubeconfig: Path | None = None) -> str:
        """What it prints when the answer is no, which it tells by exit code 1."""
        done = self._run(arguments, input, kubeconfig)
        assert done.returncode == 1, (
            f"`{self._program.name} {' '.join(arguments)}` ended with {done.returncode}: {done.stderr}"
        )
        return done.stdout

    @contextmanager
    def running(self, *arguments: str) -> Iterator[IO[str]]:
        """Its output, to be read line by line; it is ended when the block is left."""
        process = subprocess.Popen(
            self._command(arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self._environment(None),
        )
        assert process.stdout
        with process.stdout as lines:
            try:
                yield lines
            finally:
                process.terminate()
                process.wait(PATIENCE_S)

    def _run(
        self, arguments: tuple[str, ...], input: str | None, kubeconfig: Path | None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._command(arguments),
            input=input,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
            env=self._environment(kubeconfig),
        )

    def _command(self, arguments: tuple[str, ...]) -> list[str]:
        return [str(self._program), f"--namespace={self._namespace}", *arguments]

    def _environment(self, kubeconfig: Path | None) -> dict[str, str]:
        # Discovery is cached by address, and the next cluster may have the same one.
        caches = {name: str(self._cache) for name in ("KUBECACHEDIR", "HELM_CACHE_HOME", "HELM_CONFIG_HOME")}
        return os.environ | caches | {"KUBECONFIG": str(kubeconfig or self._kubeconfig)}
