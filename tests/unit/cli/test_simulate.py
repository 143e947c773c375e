import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tessera.cli.simulate import POLICIES
from tessera.engine.policies import NODE_POLICIES

FIGURES = {"allocated_percent_at_100", "allocated_percent_at_130", "rejected_percent", "decisions_per_second"}


BRAILLE = re.compile("[\u2801-\u28ff]")


def tessera(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tessera.apps.cli", *arguments]
    around = {"COLUMNS": "80", **os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, env=around)


def tessera_in_shell(arguments: str, redirection: str) -> subprocess.CompletedProcess[str]:
    command = f"{sys.executable} -m tessera.apps.cli {arguments} {redirection}"
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=100, check=False)


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

    assert {
        "defrag",
        "fgd",
        "best-fit",
        "dot-product",
        "random",
        "binpack",
        "spread",
        "binpack/spread",
    } <= policies.keys()
    assert all(report.keys() == FIGURES | {"per_seed"} for report in policies.values())


def test_people_get_a_table_and_a_plot() -> None:
    done = tessera("simulate", "--cluster", "4x8", "--policy", "defrag,binpack")

    assert "4 nodes, 32 cards" in done.stdout
    assert "at 100 % demand" in done.stdout
    assert BRAILLE.search(done.stdout)
    assert done.stderr == ""


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
        (("--cluster", "2x2", "--policy", "best"), '--policy is "best": the node policy is "best", expected binpack'),
        (("--cluster", "2x2", "--policy", "binpack/best"), 'the card policy is "best", expected binpack, spread'),
        (("--cluster", "2x2", "--policy", "mutex"), 'the node policy is "mutex", expected binpack, spread'),
        (("--cluster", "2x2", "--policy", "binpack/"), '--policy is "binpack/": a name is missing, expected one'),
        (("--cluster", "2x2", "--policy", "/spread"), '--policy is "/spread": a name is missing, expected one'),
        (("--cluster", "2x2", "--policy", ""), '--policy is "": a name is missing, expected one'),
        (("--cluster", "٣x8"), '--cluster is "٣x8", expected nodes and cards per node'),
    ],
)
def test_a_call_that_cannot_work_gives_one_sentence_on_stderr(arguments: tuple[str, ...], sentence: str) -> None:
    done = tessera("simulate", *arguments)

    assert done.returncode == 1
    assert_one_sentence(done, sentence)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--cluster", "2x2", "--demand", "nan"), "nan is not a number from 1 to 1000"),
        (("--cluster", "2x2", "--churn", "nan"), "nan is not a number from 1 to 100"),
        (("--cluster", "2x2", "--churn", "inf"), "inf is not in the range"),
        (("--cluster", "2x2", "--seeds", "0"), "Invalid value for '--seeds': 0 is not in the range"),
        (("--cluster", "2x2", "--churn", "140"), "Invalid value for '--churn': 140.0 is not in the range"),
        (("--what",), "No such option"),
    ],
)
def test_a_call_that_is_spelled_wrong_gives_one_sentence_and_code_2(arguments: tuple[str, ...], sentence: str) -> None:
    done = tessera("simulate", *arguments)

    assert done.returncode == 2
    assert_one_sentence(done, sentence)


def assert_one_sentence(done: subprocess.CompletedProcess[str], sentence: str) -> None:
    assert done.stdout == ""
    assert done.stderr.startswith("tessera: ")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


def test_a_dump_without_a_usable_card_gives_one_sentence_that_says_why(tmp_path: Path) -> None:
    register = "GPU-0,10,99999999,100,T4,0,true:"
    node = {"kind": "Node", "metadata": {"name": "n", "annotations": {"hami.io/node-nvidia-register": register}}}
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    pod = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "resources": limits}]}}
    (tmp_path / "dump.json").write_text(json.dumps({"items": [node, pod]}))

    done = tessera("simulate", "--dump", str(tmp_path / "dump.json"))

    assert done.returncode == 1
    assert "no node has registered a usable card; node n" in done.stderr
    assert "99999999" in done.stderr
    assert done.stderr.count("\n") == 1


def test_figures_that_were_never_reached_are_null_and_dashes() -> None:
    report = json.loads(tessera("simulate", "--cluster", "6x8", "--demand", "50", "-o", "json").stdout)
    table = tessera("simulate", "--cluster", "6x8", "--demand", "50").stdout

    assert report["allocated_percent_at_100"] is report["allocated_percent_at_130"] is None
    assert report["per_seed"][0]["allocated_percent_at_100"] is None
    assert table.splitlines()[-1].split()[:3] == ["defrag", "–", "–"]
    assert not BRAILLE.search(table)


def test_a_pair_of_policies_is_simulated_under_the_name_it_was_given() -> None:
    done = tessera(
        "simulate", "--cluster", "2x4", "--policy", "binpack/spread,topology-aware,binpack/mutex", "-o", "json"
    )

    assert json.loads(done.stdout)["policies"].keys() == {"binpack/spread", "topology-aware", "binpack/mutex"}


def test_a_single_thing_is_told_in_the_singular() -> None:
    done = tessera("simulate", "--cluster", "1x1")

    assert done.stdout.startswith("1 node of 1 card: 1 node, 1 card, 1 order of arrival\n")


def test_an_encoding_without_braille_gets_a_table_in_ascii() -> None:
    done = tessera("simulate", "--cluster", "2x2", "--demand", "80", PYTHONIOENCODING="ascii")

    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert len(done.stdout.splitlines()) == 3
    assert "?" not in done.stdout


def test_brackets_in_a_file_name_are_shown_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nn,9000,9000,1,A\n")
    pods = tmp_path / "a[bold]b.csv"
    pods.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,1,500\n")

    done = tessera("simulate", "--nodes", str(tmp_path / "nodes.csv"), "--pods", str(pods))

    assert done.stdout.startswith("a[bold]b: ")


@pytest.mark.parametrize("arguments", ["simulate --cluster 2x2", "simulate --cluster 2x2 -o json", "--help"])
class TestStdout:
    def test_that_is_full_gives_one_sentence(self, arguments: str) -> None:
        done = tessera_in_shell(arguments, "> /dev/full")

        assert done.returncode == 1
        assert done.stderr == "tessera: the output cannot be written: No space left on device\n"

    def test_that_nobody_reads_ends_the_command_quietly(self, arguments: str) -> None:
        assert tessera_in_shell(arguments, "| true").stderr == ""

    def test_that_is_closed_gives_no_traceback(self, arguments: str) -> None:
        assert tessera_in_shell(arguments, ">&-").stderr == ""


def test_what_of_a_dump_was_lost_is_told_on_stderr_but_not_at_length(tmp_path: Path) -> None:
    broken = "".join(f"GPU-{card},10,much,100,T4,0,true:" for card in range(14))
    register = {"hami.io/node-nvidia-register": broken + "GPU-x,10,16384,100,T4,0,true:"}
    node = {"kind": "Node", "metadata": {"name": "n", "annotations": register}}
    node["status"] = {"allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"}}
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    pod = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "resources": limits}]}}
    (tmp_path / "dump.json").write_text(json.dumps({"items": [node, pod]}))

    told = tessera("simulate", "--dump", str(tmp_path / "dump.json")).stderr.splitlines()

    assert len(told) == 11
    assert told[0].startswith("tessera: node n: ")
    assert told[-1] == "tessera: and 4 more"


def test_without_arguments_the_help_is_shown() -> None:
    done = tessera()

    assert done.returncode == 0
    assert done.stdout == tessera("--help").stdout
    assert done.stderr == ""


def test_help_names_every_command() -> None:
    done = tessera("--help")

    assert done.returncode == 0
    assert "simulate" in done.stdout


def test_help_names_every_policy_of_the_engine() -> None:
    assert POLICIES.replace(" or ", ", ").split(", ") == list(NODE_POLICIES)
