"""The Java client as its README says: built and tested by Maven, and its tour."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from kubernetes import client, config

from tests.repository.files import ROOT
from tests.seeds.java import Compiler, copy_client, require_java, run_maven, with_declarations
from tests.seeds.samples import samples_of

pytestmark = pytest.mark.timeout(600)
SUMMARY = re.compile(r"^(?:\[\w+\] )?Tests run: (\d+), Failures: 0, Errors: 0, Skipped: (\d+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def built(kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The client, packaged with all its tests on a cluster."""
    require_java()
    directory = copy_client(tmp_path_factory.mktemp("client"))
    done = run_maven(directory, "clean", "package", kubeconfig=kubeconfig)
    assert done.returncode == 0, done.stdout
    (directory / "log").write_text(done.stdout)
    yield directory
    with config.new_client_from_config(str(kubeconfig)) as connection:
        client.CoreV1Api(connection).delete_collection_namespaced_pod("default", grace_period_seconds=0)
        connection.rest_client.pool_manager.clear()


def test_with_a_cluster_no_test_of_the_client_is_skipped(built: Path):
    count, skipped = SUMMARY.findall((built / "log").read_text())[-1]
    assert int(count) >= 13
    assert int(skipped) == 0


def test_without_a_cluster_the_tests_that_need_one_are_skipped_and_it_is_said(built: Path):
    done = run_maven(built, "surefire:test")
    assert done.returncode == 0, done.stdout
    assert int(SUMMARY.findall(done.stdout)[-1][1]) == 5
    assert "KUBECONFIG names no cluster: the tests that need one are skipped" in done.stdout


def test_the_tour_shows_the_cluster_and_places_a_pod(built: Path, kubeconfig: Path):
    done = run_maven(built, "--quiet", "exec:java", kubeconfig=kubeconfig)
    assert done.returncode == 0, done.stdout
    assert re.search(r"^  \S+  \d+ x .*  \d+ MB  all healthy$", done.stdout, re.MULTILINE)
    assert re.search(r"^  default/hami-tour-\w+  \w+  \S+  1000 MB, 10 % of GPU-", done.stdout, re.MULTILINE)
    assert "What looks wrong\n  nothing\n" in done.stdout


def test_the_tour_ends_in_one_sentence_where_there_is_no_cluster(built: Path, tmp_path: Path):
    done = run_maven(built, "--quiet", "exec:java", kubeconfig=tmp_path / "none")
    assert done.returncode == 1
    assert f"{tmp_path}/none is no kubeconfig that can be used" in done.stderr
    assert "at java.base" not in done.stdout + done.stderr


def test_the_samples_of_its_page_run(kubeconfig: Path, tmp_path: Path):
    require_java()
    compiler = Compiler(tmp_path)
    samples = samples_of((ROOT / "examples/client/java/README.md").read_text(), "java")
    assert len(samples) == 2
    for sample in samples:
        printed = compiler.run(
            f"Sample{sample.position}", with_declarations(sample, samples[: sample.position]), kubeconfig
        )
        assert "GPU-" in printed
