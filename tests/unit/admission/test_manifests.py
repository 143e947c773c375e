"""The objects that make an API server ask us. What they do is tested on a real one, in tests/admission."""

import msgspec
import pytest

from tessera.admission import DEFAULT_SETTINGS, Settings
from tessera.admission.expressions import is_one_of, quoted
from tessera.admission.guarding import Writers, guarded_annotations, policy_manifests, service_account
from tessera.admission.manifests import ServiceAddress, UrlAddress, concerns_us, webhook_manifest
from tessera.model.annotations.binding import BindOptions, bind_marks
from tests.builders import a_share, an_allocation
from tests.unit.admission.pods import CATALOGUE


def hooks_of(address, **options):
    return webhook_manifest(CATALOGUE, DEFAULT_SETTINGS, address, **options)["webhooks"]


def test_there_is_one_entry_by_the_name_that_hami_gave_it_and_one_for_claims_where_the_seed_has_it():
    hami, claims = hooks_of(ServiceAddress())
    assert (hami["name"], claims["name"]) == ("vgpu.hami.io", "claims.gpu.scheduling")
    service = {"namespace": "kube-system", "name": "hami-scheduler"}
    assert hami["clientConfig"] == {"service": service | {"port": 443, "path": "/webhook"}}
    assert claims["clientConfig"] == {"service": service | {"port": 8443, "path": "/mutate"}}
    for hook in (hami, claims):
        assert (hook["failurePolicy"], hook["sideEffects"], hook["reinvocationPolicy"]) == ("Fail", "None", "IfNeeded")


def test_a_webhook_outside_of_the_cluster_has_an_address():
    configs = [hook["clientConfig"] for hook in hooks_of(UrlAddress(url="https://10.0.0.7:8443/"))]
    assert configs == [{"url": "https://10.0.0.7:8443/webhook"}, {"url": "https://10.0.0.7:8443/mutate"}]


def test_an_authority_that_is_known_stands_in_every_entry():
    hooks = hooks_of(ServiceAddress(), authority=b"PEM")
    assert [hook["clientConfig"]["caBundle"] for hook in hooks] == ["UEVN", "UEVN"]


def test_namespaces_that_must_start_without_us_are_left_alone():
    for hook in hooks_of(ServiceAddress(), left_alone=("gpu-system", "kube-system")):
        *_, named = hook["namespaceSelector"]["matchExpressions"]
        assert named["values"] == ["kube-system", "gpu-system"]


def test_cert_manager_finds_its_annotation():
    annotations = {"cert-manager.io/inject-ca-from": "kube-system/webhook"}
    manifest = webhook_manifest(CATALOGUE, DEFAULT_SETTINGS, ServiceAddress(), annotations=annotations)
    assert manifest["metadata"]["annotations"] == annotations


def test_every_resource_of_every_vendor_and_every_scheduler_of_ours_counts():
    expression = concerns_us(CATALOGUE, Settings(scheduler="site-scheduler"))
    words = (
        *CATALOGUE.managed_resources(),
        "site-scheduler",
        "hami-scheduler",
        "gpu-scheduler",
        "gpu.scheduling/claim",
    )
    assert [word for word in words if f"'{word}'" not in expression] == []


@pytest.mark.parametrize(("text", "literal"), [("a", "'a'"), ("it's", r"'it\'s'"), ("a\\b", r"'a\\b'")])
def test_text_is_quoted(text, literal):
    assert quoted(text) == literal
    assert is_one_of("x", [text]) == f"has(x) && x in [{literal}]"


@pytest.mark.parametrize("vendor", [vendor.name for vendor in CATALOGUE])
def test_all_that_a_bind_writes_is_guarded(vendor):
    options = BindOptions(bind_phase="allocating", bind_time=True)
    held = an_allocation("gpu-07", a_share("GPU-a", 1, vendor=vendor))
    allocation = msgspec.structs.replace(held, claimed=(a_share("GPU-b", 1),))
    annotations, labels = bind_marks(allocation, {"GPU-a": 0, "GPU-b": 1}, CATALOGUE.allocation_keys(), 1, options)
    assert {"gpu.scheduling/devices", "gpu.scheduling/visible-devices"} < annotations.keys()
    assert annotations.keys() <= set(guarded_annotations(CATALOGUE))
    assert labels.keys() == {"hami.io/vgpu-node"}


def test_what_users_write_is_not_guarded():
    wishes = {key for vendor in CATALOGUE for key in vendor.annotations.all()} - {
        key for vendor in CATALOGUE for key in vendor.annotations.owned()
    }
    ours = {"hami.io/gpu-scheduler-policy", "gpu.scheduling/claim"}
    assert not set(guarded_annotations(CATALOGUE)) & (wishes | ours)


def test_the_policy_is_bound_by_its_name():
    policy, binding = policy_manifests(CATALOGUE, Writers(schedulers=(service_account("kube-system", "scheduler"),)))
    assert binding["spec"] == {"policyName": policy["metadata"]["name"], "validationActions": ["Deny"]}
    assert "'system:serviceaccount:kube-system:scheduler'" in policy["spec"]["matchConditions"][0]["expression"]
