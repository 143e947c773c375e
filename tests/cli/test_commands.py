"""`tessera nodes`, `pods`, `doctor` and `version` on a real API server, as administrator and as somebody with less."""

import json
import subprocess

import pytest

from tests.chart.conftest import install
from tests.cli.conftest import TESSERA, Commands, a_pod, cards_of
from tests.unit.scheduler.cluster import node_document

FORBIDDEN = "the API server answered 403 Forbidden: "


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


@pytest.fixture(scope="module")
def reader_of_nodes(filled: Commands) -> str:
    """Somebody who may list nodes, and nothing else."""
    filled.cluster.kubectl("create", "clusterrole", "nodes", "--verb=list", "--resource=nodes")
    filled.cluster.kubectl("create", "clusterrolebinding", "nodes", "--clusterrole=nodes", "--user=looker")
    return "looker"


@pytest.fixture(scope="module")
def member(filled: Commands) -> str:
    """Somebody who may list the pods of the namespace infer, and nothing else."""
    filled.cluster.kubectl("create", "role", "pods", "--namespace=infer", "--verb=list", "--resource=pods")
    filled.cluster.kubectl("create", "rolebinding", "pods", "--namespace=infer", "--role=pods", "--user=member")
    return "member"


def test_the_doctor_says_that_nothing_is_installed(bare: Commands):
    done = bare.run("doctor", "-o", "json")
    findings = {finding["check"]: finding for finding in json.loads(done.stdout)["items"]}

    assert done.returncode == 1, done.stderr
    assert findings["installation"]["level"] == "problem"
    assert "helm install" in findings["installation"]["advice"]
    assert {findings[check]["level"] for check in ("version", "clock", "rights")} == {"ok"}


def test_without_nodes_and_pods_people_are_told_and_programs_get_an_empty_list(bare: Commands):
    nobody = bare.run("nodes", "-l", "no=such", "-o", "json")

    assert json.loads(nobody.stdout)["items"] == []
    assert nobody.stderr == "tessera: there are no nodes, or none with these labels\n"
    assert bare.run("pods", "-n", "none").stderr == "tessera: no pod in namespace none asks for cards\n"


def test_nodes_show_what_is_given_of_their_cards(filled: Commands):
    done = filled.run("nodes")

    assert (done.returncode, done.stderr) == (0, "")
    titles, a, b = rows(done.stdout)
    assert titles[:4] == ["NAME", "STATUS", "CARDS", "MEMORY"]
    assert a[:6] == ["gpu-a", "Ready", "2xA100-SXM4-80GB", "39.1Gi/160Gi", "0/200%", "1/20"]
    assert b[3] == "1000Mi/160Gi"
    assert a[7] == "absent"


def test_wide_nodes_show_each_card_and_who_is_on_it(filled: Commands):
    first, second = cards_of(node_document("gpu-a", "2xA100-SXM4-80GB"))
    lines = rows(filled.run("nodes", "-o", "wide", "--no-headers").stdout)

    assert len(lines) == 4
    assert (lines[0][2], lines[0][-1]) == (first, "default/half")
    assert (lines[1][2], lines[1][-1]) == (second, "-")


def test_a_selector_chooses_nodes_and_pods(filled: Commands):
    assert filled.run("nodes", "-l", "pool=b", "-o", "name").stdout == "node/gpu-b\n"
    assert filled.run("pods", "-l", "app=half", "-o", "name").stdout == "pod/half\n"


def test_pods_show_their_cards_or_why_they_wait(filled: Commands):
    titles, half, too_much = filled.run("pods").stdout.splitlines()

    assert titles.split() == ["NAME", "PHASE", "AGE", "NODE", "ASKS", "CARDS", "WAITS", "BECAUSE"]
    assert half.split()[3:6] == ["gpu-a", "1xNVIDIA:40000Mi", "#0"]
    assert "0/2 nodes are available: 2 no card has 90000 MiB free, the roomiest has 81920 MiB" in too_much


def test_pods_of_all_namespaces_and_of_one(filled: Commands):
    everywhere = json.loads(filled.run("pods", "-A", "-o", "json").stdout)["items"]

    assert [(pod["namespace"], pod["name"]) for pod in everywhere] == [
        ("default", "half"),
        ("default", "too-much"),
        ("infer", "small"),
    ]
    assert filled.run("pods", "-n", "infer", "-o", "name").stdout == "pod/small\n"


def test_who_watches_sees_pods_come_and_go_and_may_leave(filled: Commands):
    with filled.watching("pods", "-w") as watched:
        watched.wait_for("half", "gpu-a")
        filled.create(a_pod("passing", 500))
        watched.wait_for("passing", "Pending", "no scheduler named hami-scheduler has looked at it yet")
        filled.delete_pod("passing")
        watched.wait_for("passing", "Deleted")

        assert watched.interrupt() == (130, "tessera: interrupted")


def test_who_watches_nodes_sees_a_card_being_taken(filled: Commands):
    second = cards_of(node_document("gpu-a", "2xA100-SXM4-80GB"))[1]
    with filled.watching("nodes", "-w", "-l", "gpu=on") as watched:
        watched.wait_for("gpu-a", "39.1Gi/160Gi")
        filled.create(a_pod("taker", 81_920, node="gpu-a", uuid=second))
        watched.wait_for("gpu-a", "119.1Gi/160Gi")
        filled.delete_pod("taker")

        assert watched.interrupt() == (130, "tessera: interrupted")


@pytest.mark.parametrize("arguments", ["nodes -o wide", "pods -A -w -o json"])
def test_a_reader_that_has_seen_enough_is_not_complained_to(filled: Commands, arguments: str):
    command = f"{' '.join(TESSERA)} {arguments} | head -c 1"
    around = filled.environment()
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False, env=around)

    assert (len(done.stdout), done.stderr) == (1, "")


@pytest.mark.parametrize("command", ["nodes", "pods"])
@pytest.mark.parametrize("options", [[], ["-w"]], ids=["once", "watching"])
def test_somebody_without_rights_is_told_in_one_sentence(filled: Commands, command: str, options: list[str]):
    done = filled.run(command, *options, user="nobody")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"tessera: list {command}")
    assert FORBIDDEN in done.stderr
    assert done.stderr.count("\n") == 1


def test_what_may_not_be_read_is_unknown_and_not_nothing(filled: Commands, reader_of_nodes: str):
    done = filled.run("nodes", user=reader_of_nodes)

    assert done.returncode == 0
    assert rows(done.stdout)[1][3:8] == ["?/160Gi", "?/200%", "?/20", rows(done.stdout)[1][6], "unknown"]
    assert done.stderr.splitlines() == [
        "tessera: what pods hold is unknown: pods may not be listed",
        "tessera: which agents live is unknown: leases in kube-system may not be listed",
    ]


def test_a_member_of_a_namespace_sees_its_pods_with_uuids(filled: Commands, member: str):
    done = filled.run("pods", "-n", "infer", user=member)

    assert done.returncode == 0
    assert rows(done.stdout)[1][5].startswith("GPU-")
    assert "which card is which is unknown: nodes may not be listed" in done.stderr


def test_the_doctor_tells_somebody_without_rights_that_it_saw_too_little(filled: Commands):
    done = filled.run("doctor", user="nobody")

    assert done.returncode == 1
    assert [line.split()[:2] for line in done.stdout.splitlines()] == [
        ["ok", "version"],
        ["ok", "clock"],
        ["problem", "rights"],
    ]


def test_the_version_of_the_cluster_is_told(filled: Commands):
    told = json.loads(filled.run("version", "-o", "json").stdout)

    assert (
        told["kubernetes"] == json.loads(filled.cluster.kubectl("version", "-o", "json"))["serverVersion"]["gitVersion"]
    )
    assert told["schedulers"] == []


def test_the_doctor_sees_what_an_installation_lacks(filled: Commands):
    """The chart is installed, but nobody starts its pods: that is what the last test of the module does."""
    install(filled.cluster)
    findings = json.loads(filled.run("doctor", "-o", "json").stdout)["items"]
    said = {finding["check"]: (finding["level"], finding["sentence"]) for finding in findings}

    assert said["scheduler"] == ("problem", "no pod hami-scheduler is in kube-system")
    assert said["kube-scheduler"] == ("ok", "its profile hami-scheduler asks our extender")
    assert said["webhook"][0] == "problem"
    assert "has no authority to verify us with" in said["webhook"][1]
    assert said["definitions"][0] == said["nodes"][0] == "ok"
    assert said["pods"][0] == "warning"
