"""The webhook for claims and the policy that guards what the scheduler writes, on the embedded API server."""

import ssl

import pytest

from tessera.admission import DEFAULT_SETTINGS, Webhook
from tessera.admission.guarding import Writers, policy_manifests
from tessera.admission.manifests import UrlAddress, webhook_manifest
from testbed.certificates import Authority
from tests.admission.conftest import CATALOGUE, a_pod
from tests.admission.server import WebhookServer
from tests.admission.test_claims import LATE, MARKER, MINE, PIN, a_large_pod, all_containers
from tests.admission.users import SCHEDULER
from tests.contract.api import MERGE_PATCH, Api, Refused
from tests.embedded.server import HOST, Server

REGISTRATION = "admissionregistration.k8s.io/v1"
PLURALS = {
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}


@pytest.fixture(scope="module")
def pods(tmp_path_factory):
    directory = tmp_path_factory.mktemp("embedded")
    authority = Authority(directory, "webhook-ca")
    serving = authority.issue("webhook", "webhook", reachable_at=[HOST])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(serving.certificate, serving.key)
    webhook = WebhookServer(HOST, context, Webhook(CATALOGUE, DEFAULT_SETTINGS))
    bundle, address = authority.files.certificate.read_bytes(), UrlAddress(url=webhook.url)
    server = Server(directory)
    with webhook.running(), Api(server.kubeconfig) as api:
        for manifest in (
            webhook_manifest(CATALOGUE, DEFAULT_SETTINGS, address, authority=bundle),
            *policy_manifests(CATALOGUE, Writers(schedulers=(SCHEDULER,))),
        ):
            api.collection(f"{REGISTRATION}/{PLURALS[manifest['kind']]}").create(manifest)
        yield api.collection("pods", "default")
    server.stop()


def test_a_pod_with_a_claim_is_completed(pods):
    pod = pods.create(a_large_pod("claiming", "default", annotations=MINE))
    assert pod["spec"]["schedulerName"] == "gpu-scheduler"
    for container in all_containers(pod):
        assert container["resources"] == {"limits": MARKER, "requests": MARKER}
        assert container["env"] == [LATE]


def test_a_pin_is_told_literally(pods):
    pod = pods.create(a_large_pod("pinned", "default", annotations=PIN))
    assert [one["env"] for one in all_containers(pod)] == [[{"name": "CUDA_VISIBLE_DEVICES", "value": "0,1"}]] * 3


def test_a_marker_without_a_claim_is_denied(pods):
    with pytest.raises(Refused, match=r"asks for the resource gpu\.scheduling/claim, expected the annotation"):
        pods.create(a_pod("wrong", "default", limits=MARKER))


@pytest.mark.parametrize("key", ["gpu.scheduling/devices", "gpu.scheduling/visible-devices"])
def test_nobody_makes_a_pod_that_was_given_cards(pods, key):
    with pytest.raises(Refused, match=f"annotation {key} is written by"):
        pods.create(a_pod("forged", "default", annotations={key: "x"}))


def test_what_claim_a_pod_names_is_settled_once_it_is_on_a_node(pods):
    pods.create(a_pod("settled", "default", annotations=MINE))
    change = {"metadata": {"annotations": {"gpu.scheduling/claim": "yours"}}}
    pods.patch("settled", MERGE_PATCH, change, dryRun="All")
    pods.post("settled/binding", {"metadata": {"name": "settled"}, "target": {"kind": "Node", "name": "node-a"}})
    with pytest.raises(Refused, match=r"annotation gpu\.scheduling/claim is changed, expected it to stay as it is"):
        pods.patch("settled", MERGE_PATCH, change)
