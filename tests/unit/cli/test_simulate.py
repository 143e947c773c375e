import json
import subprocess
import sys
from pathlib import Path

import pytest

FIGURES = {"allocated_percent_at_100", "allocated_percent_at_130", "rejected_percent", "decisions_per_second"}


def tessera(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tessera.apps.cli", *arguments], capture_output=True, text=True, timeout=100, check=False
    )


def test_json_has_the_means_and_every_seed() -> None:
    done = tessera("simulate", "--cluster", "6x8", "--policy", "defrag", "--seeds", "2", "-o", "json")
    report = json.loads(done.stdout)

    assert done.returncode == 0, done.stderr
    assert report.keys() == FIGURES | {"per_seed"}
    assert [seed["seed"] for seed in report["per_seed"]] == [42, 43]
    mean = sum(seed["allocated_percent_at_100"] for seed in report["per_seed"]) / 2
    assert report["allocated_percent_at_100"] == pytest.approx(mean, abs=1e-3)


def test_json_of_all_policies_is_keyed_by_policy() -> None:
    done = tessera("simulate", "--cluster", "2x4", "--policy", "all", "-o", "json")
    policies = json.loads(done.stdout)["policies"]

    assert {"defrag", "fgd", "best-fit", "dot-product", "random", "binpack", "spread"} <= policies.keys()
    assert all(report.keys() == FIGURES | {"per_seed"} for report in policies.values())


def test_people_get_a_table_and_a_plot() -> None:
    done = tessera("simulate", "--cluster", "4x8", "--policy", "defrag,binpack")

    assert "4 nodes, 32 cards" in done.stdout
    assert "at 100 % demand" in done.stdout
    assert any(0x2800 < ord(character) < 0x2900 for character in done.stdout)


def test_churn_shows_what_was_rejected() -> None:
    done = tessera("simulate", "--cluster", "4x8", "--policy", "defrag", "--churn", "90")

    assert "rejected, load held at 90 %" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "nothing given, expected one of --nodes with --pods, --dump or --cluster"),
        (("--cluster", "3"), '--cluster is "3", expected nodes and cards per node such as "1000x8"'),
        (("--cluster", "2x2", "--dump", "x"), "--dump and --cluster given, expected one of"),
        (("--nodes", "n.csv"), "only one of --nodes and --pods given, expected both: the cards and who wants them"),
        (("--nodes", "/no/n.csv", "--pods", "/no/p.csv"), "/no/n.csv cannot be read: No such file or directory"),
        (("--cluster", "2x2", "--policy", "best"), '--policy is "best", expected binpack, spread, defrag'),
        (("--cluster", "2x2", "--seeds", "0"), "Invalid value for '--seeds': 0 is not in the range"),
        (("--cluster", "2x2", "--churn", "140"), "Invalid value for '--churn': 140.0 is not in the range"),
        (("--what",), "No such option"),
    ],
)
def test_a_bad_call_gives_one_sentence_on_stderr(arguments: tuple[str, ...], sentence: str) -> None:
    done = tessera("simulate", *arguments)

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("tessera: ")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


def test_an_error_within_a_worker_is_one_sentence_too(tmp_path: Path) -> None:
    register = "GPU-0,10,99999999,100,T4,0,true:"
    node = {"kind": "Node", "metadata": {"name": "n", "annotations": {"hami.io/node-nvidia-register": register}}}
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    pod = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "resources": limits}]}}
    (tmp_path / "dump.json").write_text(json.dumps({"items": [node, pod]}))

    done = tessera("simulate", "--dump", str(tmp_path / "dump.json"))

    assert done.returncode == 1
    assert "reports memory_mib 99999999, expected 1 to" in done.stderr
    assert "Traceback" not in done.stderr


def test_help_names_every_command() -> None:
    done = tessera("--help")

    assert done.returncode == 0
    assert "simulate" in done.stdout
