"""Nobody answers for our webhook: our pods wait, all others start."""

import pytest

from tessera.admission import DEFAULT_SETTINGS
from tessera.admission.manifests import UrlAddress, webhook_manifest
from testbed.requirements import TestbedFailed
from tests.admission.conftest import CATALOGUE, a_pod, make_namespace
from tests.admission.waiting import eventually

GPU = {"nvidia.com/gpu": "1"}


@pytest.fixture(scope="module")
def outage(admission_api):
    address = UrlAddress(url=f"https://{admission_api.host}:1")
    manifest = webhook_manifest(CATALOGUE, DEFAULT_SETTINGS, address, name="outage", left_alone=("our-own",))
    make_namespace(admission_api, "our-own")
    make_namespace(admission_api, "canary")
    admission_api.apply(manifest)
    eventually(lambda: not is_admitted(admission_api))
    yield
    admission_api.delete(manifest)
    eventually(lambda: is_admitted(admission_api))


def is_admitted(api):
    try:
        api.create(a_pod("canary", "canary", limits=GPU), "--dry-run=server")
    except TestbedFailed:
        return False
    return True


@pytest.mark.usefixtures("outage")
def test_a_pod_that_asks_for_a_card_is_refused(admission_api, namespace):
    said = admission_api.refusal("create", "-f", "-", input=a_pod("trainer", namespace, limits=GPU))
    assert 'failed calling webhook "vgpu.hami.io"' in said


@pytest.mark.usefixtures("outage")
@pytest.mark.parametrize("annotations", [{"gpu.scheduling/claim": "mine"}, {"gpu.scheduling/allocated": "gpu-07:0"}])
def test_a_pod_that_claims_cards_is_refused(admission_api, namespace, annotations):
    said = admission_api.refusal("create", "-f", "-", input=a_pod("trainer", namespace, annotations=annotations))
    assert 'failed calling webhook "claims.gpu.scheduling"' in said


@pytest.mark.usefixtures("outage")
def test_pods_that_ask_for_none_start(admission_api, namespace):
    assert admission_api.create(a_pod("plain", namespace))
    assert admission_api.create(a_pod("cpu", namespace, limits={"cpu": "1"}))


@pytest.mark.usefixtures("outage")
@pytest.mark.parametrize("where", ["kube-system", "our-own"])
def test_the_control_plane_and_we_ourselves_can_be_started_again(admission_api, where):
    pod = a_pod("hami-scheduler-0", where, limits=GPU)
    pod["spec"]["schedulerName"] = "hami-scheduler"
    assert admission_api.create(pod)
    admission_api.cluster.kubectl("delete", "pod", "hami-scheduler-0", f"--namespace={where}", "--force")


@pytest.mark.usefixtures("outage")
def test_what_runs_can_be_changed_and_deleted(admission_api):
    pod = a_pod("running", "kube-system", limits=GPU)
    admission_api.create(pod)
    admission_api.cluster.kubectl("annotate", "pod", "running", "--namespace=kube-system", "a=b")
    admission_api.cluster.kubectl("delete", "pod", "running", "--namespace=kube-system", "--force")
