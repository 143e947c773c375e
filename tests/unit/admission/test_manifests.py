"""The objects that make an API server ask us. What they do is tested on a real one, in tests/admission."""

import pytest

from tessera.admission import DEFAULT_SETTINGS, Settings
from tessera.admission.expressions import is_one_of, quoted
from tessera.admission.guarding import Writers, guarded_annotations, policy_manifests, service_account
from tessera.admission.manifests import ServiceAddress, UrlAddress, concerns_us, webhook_manifest
from tessera.model.annotations.binding import BindOptions, bind_marks
from tests.builders import a_share, an_allocation
from tests.unit.admission.pods import CATALOGUE


def hook_of(**options):
    return webhook_manifest(CATALOGUE, DEFAULT_SETTINGS, ServiceAddress(), **options)["webhooks"][0]


def test_the_webhook_has_the_name_that_hami_gave_it_and_may_fail():
    hook = hook_of()
    assert (hook["name"], hook["failurePolicy"], hook["sideEffects"]) == ("vgpu.hami.io", "Fail", "None")
    assert hook["clientConfig"]["service"]["path"] == "/webhook"


def test_a_webhook_outside_of_the_cluster_has_an_address():
    manifest = webhook_manifest(CATALOGUE, DEFAULT_SETTINGS, UrlAddress(url="https://10.0.0.7:8443/"))
    assert manifest["webhooks"][0]["clientConfig"] == {"url": "https://10.0.0.7:8443/webhook"}


def test_namespaces_that_must_start_without_us_are_left_alone():
    *_, named = hook_of(left_alone=("gpu-system", "kube-system"))["namespaceSelector"]["matchExpressions"]
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
    allocation = an_allocation("gpu-07", a_share("GPU-a", 1, vendor=vendor))
    annotations, labels = bind_marks(allocation, {"GPU-a": 0}, CATALOGUE.allocation_keys(), 1, options)
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
