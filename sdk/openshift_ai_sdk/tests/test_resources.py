"""What a worker may ask for, and the one sentence that it gets for what it may not."""

import pytest

from openshift_ai_sdk.training import MPIJob, ResourceRequirements


def test_the_defaults_are_four_cores_sixteen_gibibytes_and_no_gpu():
    assert ResourceRequirements() == ResourceRequirements(cpu=4, memory="16Gi", gpu=0)


@pytest.mark.parametrize(
    "memory",
    ["1", "512M", "64Gi", "1.5Gi", ".5Gi", "5.Gi", "+2Ti", "128974848000m", "123e6", "12E3", "1E", "7.9Ei", "100k"],
)
def test_every_form_of_a_kubernetes_quantity_is_accepted(memory):
    assert ResourceRequirements(memory=memory).memory == memory


@pytest.mark.parametrize(
    "memory", ["", "lots", "16GB", "16 Gi", "16gi", "16K", "Gi", ".", "1e", "1e3Gi", "16Gi\n", "\u0661Gi"]
)
def test_a_text_that_is_no_quantity_is_refused(memory):
    with pytest.raises(ValueError, match=r'^memory is .*, expected a Kubernetes quantity such as "16Gi" or "512M"$'):
        ResourceRequirements(memory=memory)


@pytest.mark.parametrize("memory", [16, 16.0, None, True, b"16Gi"])
def test_memory_that_is_no_text_is_refused(memory):
    with pytest.raises(ValueError, match=r"^memory is .*, expected a Kubernetes quantity"):
        ResourceRequirements(memory=memory)


@pytest.mark.parametrize("memory", ["0", "0Gi", "-1Gi", "100m", "1e-3"])
def test_memory_of_less_than_a_byte_is_refused(memory):
    with pytest.raises(ValueError, match=r"^memory is .*, expected at least one byte"):
        ResourceRequirements(memory=memory)


@pytest.mark.parametrize("memory", ["8Ei", "10E", "9223372036854775808", "1e9999"])
def test_memory_that_kubernetes_cannot_count_is_refused(memory):
    with pytest.raises(ValueError, match=r"^memory is .*, expected less than 8Ei, the most that Kubernetes counts$"):
        ResourceRequirements(memory=memory)


def test_the_largest_memory_that_kubernetes_counts_is_accepted():
    assert ResourceRequirements(memory="9223372036854775807").memory == "9223372036854775807"


@pytest.mark.parametrize("cpu", [1, 4, 256])
def test_any_positive_number_of_cores_is_accepted(cpu):
    assert ResourceRequirements(cpu=cpu).cpu == cpu


@pytest.mark.parametrize("cpu", [0, -1, 0.5, 4.0, "4", None, True])
def test_cores_that_are_not_a_positive_whole_number_are_refused(cpu):
    with pytest.raises(ValueError, match=r"^cpu is .*, expected a whole number of cores greater than 0$"):
        ResourceRequirements(cpu=cpu)


@pytest.mark.parametrize("gpu", [0, 1, 16])
def test_up_to_sixteen_gpus_are_accepted(gpu):
    assert ResourceRequirements(gpu=gpu).gpu == gpu


@pytest.mark.parametrize("gpu", [-1, 17, 1.0, "1", None, False])
def test_gpus_outside_zero_to_sixteen_are_refused(gpu):
    with pytest.raises(ValueError, match=r"^gpu is .*, expected a whole number from 0 to 16$"):
        ResourceRequirements(gpu=gpu)


@pytest.mark.parametrize(("cpu", "shown"), [("8", "'8'"), (True, "True"), (-2, "-2")])
def test_the_refusal_shows_the_value_as_it_was_given(cpu, shown):
    with pytest.raises(ValueError, match=f"^cpu is {shown}, expected"):
        ResourceRequirements(cpu=cpu)


@pytest.mark.parametrize(("field", "value"), [("cpu", 0), ("memory", "lots"), ("gpu", 17), ("gpu_cores", 50)])
def test_what_is_set_afterwards_is_checked_when_the_job_is_written(field, value):
    job = MPIJob("train", image="mpi", resources=ResourceRequirements())
    setattr(job.resources, field, value)
    with pytest.raises(ValueError, match=r"expected"):
        job.to_yaml()
