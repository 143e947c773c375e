"""What docs/mpi.md shows, run as its readers would."""

from pathlib import Path

import yaml

from testbed.mpi import Mpi
from tests.embedded.whole_engine import WholeEngine
from tests.mpi.conftest import path_with
from tests.mpi.jobs import MpiJobs
from tests.repository.files import ROOT
from tests.seeds.samples import samples_of
from tests.seeds.shell import Shell, commands_of

PAGE = (ROOT / "docs/mpi.md").read_text()


def test_the_job_that_is_shown_runs_and_its_commands_show_it(
    jobs: MpiJobs, mpi_engine: WholeEngine, open_mpi: Mpi, tmp_path: Path
) -> None:
    (sample,) = samples_of(PAGE, "yaml")
    job = yaml.safe_load(sample.text)
    for replica in job["spec"]["mpiReplicaSpecs"].values():
        path = path_with(open_mpi)["PATH"]
        replica["template"]["spec"]["containers"][0]["env"] = [{"name": "PATH", "value": path}]
    shell = Shell(mpi_engine.kubeconfig, tmp_path)
    shell.run("kubectl apply -f -", input=yaml.safe_dump(job))
    said = {command: shell.run(command) for sample in samples_of(PAGE, "bash") for command in commands_of(sample)}
    assert {"my-job-worker-0", "my-job-worker-1"} <= set(said["kubectl logs my-job-launcher"].split())
    assert any("ranks-ran-on" in told for told in said.values())
    del jobs
