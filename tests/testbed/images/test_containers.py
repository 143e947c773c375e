"""The images, imported into containerd and run."""

import subprocess
from pathlib import Path

import pytest

from tessera import __version__
from testbed.building import Programs
from testbed.images.cache import default_cache
from testbed.images.oci import Image, write_image
from testbed.images.recipes import busybox, coredns, pause, tessera
from tests.repository.files import ROOT
from tests.testbed.images.containers import Containers

pytestmark = pytest.mark.timeout(600)  # the first run downloads packages and may build containerd
COREFILE = """\
.:{port} {{
  hosts {{
    127.0.0.1 web.example
  }}
}}
"""
ANSWER = "Name:\tweb.example\nAddress: 127.0.0.1"


@pytest.fixture(scope="module")
def imported(containers: Containers, programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The digest of each image, by the name under which containerd knows it."""
    folder = tmp_path_factory.mktemp("images")
    images: list[Image] = [
        busybox.busybox_image(default_cache()),
        pause.pause_image(default_cache()),
        coredns.coredns_image(programs["coredns"]),
        tessera.tessera_image(ROOT, default_cache()),
    ]
    digests: dict[str, str] = {}
    for image in images:
        written = write_image(image, folder / "image.tar", default_cache())
        containers.runtime.load(written.path)
        digests[image.reference] = written.digest
    return digests


def until_line(process: subprocess.Popen[str], expected: str) -> None:
    assert process.stdout
    seen: list[str] = []
    for line in process.stdout:
        seen.append(line)
        if expected in line:
            return
    pytest.fail(f"it ended without {expected!r}: {''.join(seen)}")


def test_containerd_knows_the_images_by_our_names_and_digests(containers: Containers, imported: dict[str, str]):
    listed = [line.split() for line in containers.runtime.ctr("images", "list").splitlines()[1:]]
    assert imported.items() <= {words[0]: words[2] for words in listed}.items()


def test_busybox_has_its_applets_a_user_and_a_place_to_write(containers: Containers, imported: dict[str, str]):
    assert busybox.REFERENCE in imported
    script = "whoami; echo text > /tmp/file; ls -ld /tmp /tmp/file | cut -c1-10; which awk"
    said = containers.run("busybox", busybox.REFERENCE, "sh", "-c", script)
    assert said.splitlines()[-4:] == ["root", "drwxrwxrwt", "-rw-r--r--", "/bin/awk"]


def test_pause_runs_as_nobody_and_ends_at_once_on_term(containers: Containers, imported: dict[str, str]):
    assert pause.REFERENCE in imported
    with containers.running("pause", pause.REFERENCE) as process:
        assert "65535" in containers.execute("pause", "/bin/busybox", "id", "-u").split()
        containers.signal("pause", "SIGTERM")
        process.communicate(timeout=5)
        assert process.returncode == 0


def test_pause_reaps_the_orphans_that_are_left_to_it(containers: Containers, imported: dict[str, str]):
    assert pause.REFERENCE in imported
    # The inner shell ends before its child, which falls to process 1; a child has a folder in /proc until it is reaped.
    script = """
        orphan=$(busybox sh -c 'busybox sleep 0.2 >/dev/null & echo $!')
        busybox grep PPid /proc/$orphan/status
        until [ ! -d /proc/$orphan ]; do busybox usleep 10000; done
        echo reaped
    """
    with containers.running("reaper", pause.REFERENCE):
        assert containers.execute("reaper", "/bin/busybox", "sh", "-c", script).split() == ["PPid:", "1", "reaped"]


@pytest.mark.parametrize("port", [53, 1053])
def test_coredns_serves_as_an_ordinary_user(
    containers: Containers, imported: dict[str, str], tmp_path: Path, port: int
):
    assert coredns.REFERENCE in imported
    corefile = tmp_path / "Corefile"
    corefile.write_text(COREFILE.format(port=port))
    with containers.running(f"dns-{port}", coredns.REFERENCE, files={"/Corefile": corefile}) as server:
        until_line(server, "CoreDNS-")
        asked = containers.run("ask", busybox.REFERENCE, "nslookup", "-type=a", "web.example", f"127.0.0.1:{port}")
        assert ANSWER in asked


def test_busybox_finds_names_through_resolv_conf(containers: Containers, imported: dict[str, str], tmp_path: Path):
    assert {coredns.REFERENCE, busybox.REFERENCE} <= imported.keys()
    (tmp_path / "Corefile").write_text(COREFILE.format(port=53))
    (tmp_path / "resolv.conf").write_text("nameserver 127.0.0.1\n")
    resolving = {"/etc/resolv.conf": tmp_path / "resolv.conf"}
    serve = ["httpd", "-f", "-p", "127.0.0.1:8080", "-h", "/etc"]
    with (
        containers.running("names", coredns.REFERENCE, files={"/Corefile": tmp_path / "Corefile"}) as names,
        containers.running("web", busybox.REFERENCE, *serve),
    ):
        until_line(names, "CoreDNS-")
        looked_up = containers.run("lookup", busybox.REFERENCE, "nslookup", "web.example", files=resolving)
        assert ANSWER in looked_up
        fetch = "until wget -q -O - http://web.example:8080/nsswitch.conf; do usleep 10000; done"
        assert "hosts: files dns" in containers.run(
            "fetch", busybox.REFERENCE, "timeout", "20", "sh", "-c", fetch, files=resolving
        )


def test_tessera_tells_its_version(containers: Containers, imported: dict[str, str]):
    assert tessera.REFERENCE in imported
    assert containers.run("version", tessera.REFERENCE, "tessera", "--version").endswith(
        f"tessera, version {__version__}\n"
    )


def test_tessera_simulates_as_an_ordinary_user(containers: Containers, imported: dict[str, str]):
    assert tessera.REFERENCE in imported
    simulate = ["tessera", "simulate", "--cluster", "10x8", "--policy", "binpack", "--seeds", "1"]
    assert "10 nodes, 80 cards" in containers.run("simulation", tessera.REFERENCE, *simulate)
    who = "import os; print('user', os.getuid(), os.getgid())"
    assert "user 65532 65532" in containers.run("who", tessera.REFERENCE, "python3", "-c", who)


def test_every_run_time_dependency_loads_in_the_image(containers: Containers, imported: dict[str, str]):
    assert tessera.REFERENCE in imported
    load = "import aiohttp, click, msgspec, numpy, pynvml, rich, ssl, structlog, uvloop, yaml; print('loaded')"
    assert "loaded" in containers.run("imports", tessera.REFERENCE, "python3", "-c", load)
