"""The policy that keeps agents to their nodes. What it does is tested on a real API server, in tests/chart."""

from datetime import UTC, datetime

import pytest

from tessera.admission.confining import agent_policy_manifests, reported_annotations
from tessera.admission.guarding import guarded_annotations, service_account
from tessera.model.annotations.handshakes import HandshakeStyle
from tessera.model.annotations.registers import RegisterFormat
from tessera.vendors.reporting import in_form, report_alive, report_cards
from tessera.vendors.simulated import parse_plan, simulate
from tests.unit.admission.pods import CATALOGUE

AGENT = service_account("kube-system", "hami-device-plugin")
FORMS = [RegisterFormat.SEED, RegisterFormat.HAMI, RegisterFormat.JSON]


@pytest.mark.parametrize("form", FORMS)
def test_an_agent_may_write_the_keys_of_every_vendor_in_every_form(form: RegisterFormat):
    keys = [vendor.annotations for vendor in in_form(CATALOGUE, form)]
    written = {key for one in keys for key in (one.register, one.handshake, one.links) if key}
    assert len(written) > len(CATALOGUE)
    assert written <= set(reported_annotations(CATALOGUE))


@pytest.mark.parametrize("form", FORMS)
def test_an_agent_may_write_all_that_it_reports(form: RegisterFormat):
    inventory, catalogue = simulate("gpu-07", parse_plan("2xA100-SXM4-80GB"), CATALOGUE), in_form(CATALOGUE, form)
    written = {
        *report_cards("gpu-07", inventory, catalogue),
        *report_alive(inventory, catalogue, datetime.now(UTC), HandshakeStyle.HAMI),
    }
    ours = {key for key in written if key.startswith("tessera.io/")}
    assert len(written) == 4
    assert written - ours <= set(reported_annotations(CATALOGUE))


def test_what_an_agent_reports_is_nothing_that_pods_are_guarded_by_and_no_cordon():
    reported = set(reported_annotations(CATALOGUE))
    assert not reported & set(guarded_annotations(CATALOGUE))
    assert "hami.io/device-cordon" not in reported


def test_the_policy_is_for_agents_alone_and_is_in_force():
    policy, binding = agent_policy_manifests(CATALOGUE, (AGENT,))
    (condition,) = policy["spec"]["matchConditions"]
    assert condition["expression"] == f"request.userInfo.username in ['{AGENT}']"
    assert policy["spec"]["failurePolicy"] == "Fail"
    assert binding["spec"] == {"policyName": policy["metadata"]["name"], "validationActions": ["Deny"]}
