"""Programs are built once per version, and nobody ever sees half of one."""

import subprocess
import threading

import pytest

from testbed import building, toolchain
from testbed.building import Programs, build
from testbed.fixtures import require_testbed
from testbed.requirements import TestbedFailed, missing
from testbed.toolchain import ALL, Tool

HELLO = 'package main\n\nvar version = "none"\n\nfunc main() { println("hello " + version) }\n'


@pytest.fixture
def tool(tmp_path, monkeypatch) -> Tool:
    """A tool whose module is a few lines in a directory."""
    require_testbed()
    monkeypatch.setattr(toolchain, "TOOLS", tmp_path / "tools")
    directory = tmp_path / "tools" / "hello"
    directory.mkdir(parents=True)
    (directory / "go.mod").write_text("module hello.test\n\ngo 1.21\n\n// require hello.test v1.2.3\n")
    (directory / "go.sum").write_text("")
    (directory / "main.go").write_text(HELLO)
    (directory / "notes.txt").write_text("read me")
    return Tool(
        "hello", "// require hello.test", {"hello": "hello.test"}, version_variables=("main.version={version}",)
    )


def test_a_program_is_built_with_its_version(tool, tmp_path):
    program = build(tool, tmp_path / "cache") / "hello"
    said = subprocess.run([program], capture_output=True, text=True, check=True).stderr
    assert said == "hello v1.2.3\n"


def test_what_is_built_is_not_built_again_until_something_changes(tool, tmp_path, monkeypatch):
    first = build(tool, tmp_path / "cache")
    monkeypatch.setattr(building, "_go_build", lambda *_: pytest.fail("built again"))
    assert build(tool, tmp_path / "cache") == first
    assert tool._replace(tags=("other",)).linker_flags == tool.linker_flags
    with pytest.raises(pytest.fail.Exception, match="built again"):
        build(tool._replace(tags=("other",)), tmp_path / "cache")


def test_two_who_need_the_same_program_build_it_once(tool, tmp_path, monkeypatch):
    builds: list[str] = []
    real = building._go_build
    monkeypatch.setattr(building, "_go_build", lambda *arguments: (builds.append("built"), real(*arguments)))
    threads = [threading.Thread(target=build, args=(tool, tmp_path / "cache")) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert builds == ["built"]


def test_a_build_that_fails_says_what_the_compiler_said_and_leaves_nothing_to_run(tool, tmp_path):
    (tool.directory / "main.go").write_text("package main\n\nfunc main() { nonsense() }\n")
    with pytest.raises(TestbedFailed, match=r"(?s)for hello v1\.2\.3 ended with exit code 1:.*undefined: nonsense"):
        build(tool, tmp_path / "cache")
    assert not [path for path in (tmp_path / "cache").iterdir() if path.is_dir() and not path.name.startswith(".")]


def test_every_tool_pins_its_version_and_checksums():
    for known in ALL:
        assert known.version.startswith("v")
        assert known.module in (known.directory / "go.sum").read_text()
    assert Programs().version("kubectl").startswith("v1.36.")


def test_what_is_missing_is_said_in_a_sentence(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert "the testbed builds Kubernetes with Go, and `go` is not on PATH: install Go 1.26 or newer" in missing()
