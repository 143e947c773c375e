"""What the scheduler's process serves and to whom, asked by a real kube-scheduler and as Prometheus would."""

import json
import ssl
from collections import Counter

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.apps.conftest import Bed, eventually, fetch, status_of
from tests.scheduler.conftest import a_pod
from tests.scheduler.recording import RecordingProxy

A100 = 81_920


def test_kube_scheduler_asks_an_extender_only_if_it_can_verify_it(bed: Bed):
    ours, others = bed.certificates("ours"), bed.certificates("others")
    address = bed.address()
    extender = bed.start_extender("--https", address, "--tls-dir", str(ours))
    extender.wait_until_ok("/readyz")
    url = ("--extender-url", f"https://{address}", "--ca-file")
    mistaken = bed.start_scheduler("mistaken", *url, str(others / "ca.crt"))
    bed.create(a_pod("careful", memory=1000))
    assert "x509: certificate signed by unknown authority" in bed.wait_until_refused("careful")
    mistaken.stop()
    bed.start_scheduler("right", *url, str(ours / "ca.crt"))
    bed.wait_until_bound("careful")


def test_everything_is_served_over_tls_and_little_on_the_other_listeners(bed: Bed):
    certificates = bed.certificates("everything")
    https, webhook, metrics = bed.address(), bed.address(), bed.address()
    tls = ("--tls-dir", str(certificates), "--webhook", webhook, "--webhook-tls-dir", str(certificates))
    extender = bed.start_extender("--https", https, *tls, "--metrics", metrics)
    extender.wait_until_ok("/readyz")
    trust = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
    paths = ("/healthz", "/readyz", "/metrics", "/ledger")
    assert [status_of(f"https://{https}{path}", trust) for path in paths] == [200] * 4
    assert [status_of(f"https://{webhook}{path}", trust) for path in paths] == [200, 200, 404, 404]
    assert [status_of(f"http://{metrics}{path}") for path in paths] == [200] * 4
    asked = {"Pod": a_pod("any", memory=1), "NodeNames": ["gpu-0000"]}
    assert json.loads(fetch(f"https://{https}/filter", trust, asked)[1])["NodeNames"] == ["gpu-0000"]
    assert status_of(f"https://{webhook}/filter", trust, asked) == 404
    assert status_of(f"http://{metrics}/filter", None, asked) == 404
    assert status_of(f"https://{https}/webhook", trust, {}) == 400
    assert status_of(f"https://{webhook}/webhook", trust, {}) == 400
    with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
        status_of(f"https://{https}/healthz", ssl.create_default_context())


def test_what_happened_to_pods_is_counted_and_told(bed: Bed):
    extender = bed.start_extender("--bind-events")
    extender.wait_until_ok("/readyz")
    bed.start_scheduler("counting", "--extender-url", extender.url)
    bed.create(a_pod("small", memory=1000), a_pod("large", memory=A100 + 1))
    bed.wait_until_bound("small")
    bed.wait_until_refused("large")
    eventually(lambda: bool(bed.events_about("large", "FilteringFailed")), "the refused pod has an event")
    eventually(lambda: bool(bed.events_about("small", "BindingSucceed")), "the bound pod has an event")
    (refused,), (bound,) = bed.events_about("large", "FilteringFailed"), bed.events_about("small", "BindingSucceed")
    assert refused["message"] == (
        "no node can take the pod; 2 of 2: no card has 81921 MiB free, the roomiest has 81920 MiB"
    )
    node = bed.pod("small")["spec"]["nodeName"]
    assert (bound["message"], bound["count"]) == (f"Successfully binding node [{node}] to default/small", 1)
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(fetch(f"{extender.url}/metrics")[1].decode())
        for sample in family.samples
    }
    assert samples["tessera_binds_total", ("outcome", "bound")] == 1
    assert samples["tessera_refusals_total", ("reason", "CardMemory")] >= 1
    assert samples["tessera_request_seconds_count", ("verb", "bind")] == 1
    assert samples["tessera_waiting_pods",] == 1
    assert (samples["tessera_decides",], samples["tessera_drift_total",]) == (1, 0)
    assert samples["tessera_holdings", ("state", "bound")] == 1
    allocated = [value for key, value in samples.items() if key[0] == "hami_gpu_memory_allocated_bytes"]
    assert (len(allocated), sum(allocated)) == (16, 1000 * 2**20)


@pytest.mark.parametrize(("flags", "events"), [((), 0), (("--bind-events",), 5)], ids=["as it is", "with events"])
def test_a_bind_costs_one_binding_and_one_event_where_somebody_wants_it(bed: Bed, flags: tuple[str, ...], events: int):
    names = [f"cheap-{number}" for number in range(5)]
    with RecordingProxy(bed.cluster.kubeconfig, bed.directory) as recorder:
        extender = bed.start_extender(*flags, kubeconfig=recorder.kubeconfig)
        extender.wait_until_ok("/readyz")
        bed.start_scheduler("cheap", "--extender-url", extender.url)
        bed.create(*(a_pod(name, memory=1000) for name in names))
        bed.wait_until_bound(*names)
        eventually(lambda: sum(bool(bed.events_about(name, "BindingSucceed")) for name in names) == events, "told of")
        kinds = Counter(write.rpartition(" ")[0] for write in recorder.writes)
        bed.stop_all()
    assert kinds == Counter({"POST pods/binding": 5, "POST events": events})


def test_telling_wakes_nobody(bed: Bed):
    """A pod that waits is asked about a few times while kube-scheduler backs off, and events do not add to that."""
    extender = bed.start_extender()
    extender.wait_until_ok("/readyz")
    bed.start_scheduler("patient", "--extender-url", extender.url)
    bed.create(a_pod("patient", memory=A100 + 1))
    eventually(lambda: bool(bed.events_about("patient", "FilteringFailed")), "the refused pod has an event")
    bed.wait_until_refused("patient")
    (first,) = bed.events_about("patient", "FilteringFailed")
    version = bed.pod("patient")["metadata"]["resourceVersion"]
    bed.create(a_pod("next", memory=1000))  # what happens to others wakes it, as ever
    bed.wait_until_bound("next")
    assert bed.pod("patient")["metadata"]["resourceVersion"] == version, "events do not touch the pod"
    assert bed.events_about("patient", "FilteringFailed") == [first], "the same is not told twice"
