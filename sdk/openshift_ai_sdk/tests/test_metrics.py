"""What workers use, by Prometheus: None where nobody knows, with the source named, and failures as ApiException."""

import json

import api_server
import pytest
from api_server import Failure
from kubernetes.client.exceptions import ApiException

from openshift_ai_sdk.training import prometheus

QUERY = "/api/v1/query"


def sample(name, value, pod="train-worker-0", spelling="", **labels):
    where = {f"{spelling}namespace": "lab", f"{spelling}pod": pod}
    named = {"__name__": name} if name else {}
    return {"metric": {**named, **where, **labels}, "value": [1.0, str(value)]}


def answering(*gauges, **rates):
    """As Prometheus would: gauges by their selector, counters by their rate."""

    def answer(request):
        query = dict(api_server.parse_qsl(request.body))["query"]
        if query.startswith("{__name__"):
            return {"status": "success", "data": {"result": list(gauges)}}
        found = [samples for name, samples in rates.items() if name in query]
        return {"status": "success", "data": {"result": found[0] if found else []}}

    return answer


@pytest.fixture
def metrics_of(server, job, monkeypatch):
    monkeypatch.setenv("PROMETHEUS_URL", server.url)

    def metrics(*gauges, **rates):
        server.on("POST", QUERY, answering(*gauges, **rates))
        return job.get_metrics()

    return metrics


def test_what_nobody_knows_is_none_and_never_0(metrics_of, server):
    found = metrics_of()
    assert [worker["name"] for worker in found["workers"]] == ["train-worker-0", "train-worker-1"]
    assert {value for worker in found["workers"] for key, value in worker.items() if key not in ("index", "name")} == {
        None
    }
    assert set(found["aggregated"].values()) == {None}
    assert (found["source"], found["window"], found["series"]) == (server.url, "5m", [])
    assert "neither Tessera's exporter nor DCGM's tells about these pods" in found["warnings"][0]


def test_a_real_0_is_0(metrics_of):
    found = metrics_of(sample("DCGM_FI_DEV_GPU_UTIL", 0, UUID="a"))
    assert found["workers"][0]["gpuUtilization"] == 0
    assert found["aggregated"]["avgGpuUtilization"] == 0


@pytest.mark.parametrize("spelling", ["", "exported_"])
def test_both_spellings_of_a_pod_are_understood(metrics_of, spelling):
    more = {"pod": "dcgm-exporter-x", "namespace": "gpu-operator"} if spelling else {}
    util = sample("DCGM_FI_DEV_GPU_UTIL", 40, spelling=spelling, UUID="a")
    util["metric"].update(more)
    assert metrics_of(util)["workers"][0]["gpuUtilization"] == 40


def test_cards_of_a_worker_are_put_together_and_none_counts_twice(metrics_of):
    found = metrics_of(
        sample("DCGM_FI_DEV_GPU_UTIL", 20, UUID="a", instance="one"),
        sample("DCGM_FI_DEV_GPU_UTIL", 20, UUID="a", instance="two"),
        sample("DCGM_FI_DEV_GPU_UTIL", 60, UUID="b"),
        sample("DCGM_FI_DEV_FB_USED", 1000, UUID="a"),
        sample("DCGM_FI_DEV_FB_USED", 500, UUID="b"),
        sample("DCGM_FI_DEV_GPU_UTIL", 80, pod="train-worker-1", UUID="c"),
    )
    first, second = found["workers"]
    assert (first["gpuUtilization"], first["gpuMemoryUsed"]) == (40, 1500)
    assert (second["gpuUtilization"], second["gpuMemoryUsed"]) == (80, None)
    assert found["aggregated"]["avgGpuUtilization"] == 60
    assert found["aggregated"]["totalGpuMemoryUsed"] == 1500
    assert "gpuMemoryUsed is known of 1 of 2 workers; not of train-worker-1" in found["warnings"]


def test_our_exporter_is_believed_before_that_of_the_card(metrics_of):
    found = metrics_of(
        sample("DCGM_FI_DEV_GPU_UTIL", 90, UUID="a"),
        sample("hami_container_device_utilization_ratio", 30, device_uuid="a"),
        sample("hami_vgpu_memory_used_bytes", 2**30, device_uuid="a"),
    )
    assert (found["workers"][0]["gpuUtilization"], found["workers"][0]["gpuMemoryUsed"]) == (30, 1024)
    assert found["series"] == ["hami_container_device_utilization_ratio", "hami_vgpu_memory_used_bytes"]


def test_a_slice_of_a_card_tells_its_use_as_a_fraction(metrics_of):
    found = metrics_of(sample("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.25, UUID="a", GPU_I_ID="1"))
    assert found["workers"][0]["gpuUtilization"] == 25


def test_the_kubelets_figures_are_of_containers_and_not_of_the_pod_again(metrics_of):
    memory = "container_memory_working_set_bytes"
    found = metrics_of(
        sample(memory, 100, container="mpi"),
        sample(memory, 7, container="sidecar"),
        sample(memory, 107),
        sample(memory, 1, container="POD"),
        container_cpu_usage_seconds_total=[sample("", 1.5, container="mpi"), sample("", 1.6)],
        container_network_receive_bytes_total=[sample("", 10, interface="eth0"), sample("", 5, interface="eth1")],
    )
    worker = found["workers"][0]
    assert (worker["memoryUsage"], worker["cpuUsage"], worker["networkReceive"]) == (107, 1.5, 15)


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "", None])
def test_what_is_no_number_is_unknown(metrics_of, value):
    found = metrics_of({"metric": sample("DCGM_FI_DEV_GPU_UTIL", 1)["metric"], "value": [1.0, value]})
    assert found["workers"][0]["gpuUtilization"] is None


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        (Failure(503, "overloaded"), 503, "overloaded"),
        (Failure(403, "Forbidden", plain=True), 403, "Forbidden"),
        ("<html>", 502, "does not answer as Prometheus does"),
        ({"status": "error", "error": "bad query"}, 502, "refused a query: bad query"),
        ([], 502, "refused a query"),
    ],
)
def test_a_prometheus_that_fails_is_an_api_exception(server, job, answer, status, words):
    server.on("POST", QUERY, answer)
    with pytest.raises(ApiException, match=words) as caught:
        job.get_metrics(prometheus_url=server.url)
    assert caught.value.status == status


def test_a_prometheus_that_is_not_there_is_named(job):
    with pytest.raises(ApiException, match=r"Prometheus at http://127\.0\.0\.1:1 cannot be reached"):
        job.get_metrics(prometheus_url="http://127.0.0.1:1/")


@pytest.mark.usefixtures("server")
def test_where_none_is_found_it_is_said_how_to_name_it(job):
    with pytest.raises(ApiException, match="no Prometheus was found in the cluster; name it"):
        job.get_metrics()


def test_a_token_is_shown_to_whom_it_was_given_for_and_the_clusters_to_nobody(server, job, monkeypatch):
    server.on("POST", QUERY, answering())
    job.get_metrics(prometheus_url=server.url)
    job.get_metrics(prometheus_url=server.url, token="theirs")
    monkeypatch.setenv("PROMETHEUS_TOKEN", "of the environment")
    job.get_metrics(prometheus_url=server.url)
    shown = [one.headers.get("authorization") for one in server.asked("POST", QUERY)]
    assert shown[0] is None
    assert {shown[4], shown[8]} == {"Bearer theirs", "Bearer of the environment"}


def test_a_service_that_says_it_is_prometheus_is_asked_through_the_api_server(server, job):
    service = {"metadata": {"namespace": "watch", "name": "prom"}, "spec": {"ports": [{"port": 9090}]}}
    server.on("GET", "/api/v1/services", {"items": [service]})
    path = "/api/v1/namespaces/watch/services/prom:9090/proxy"
    server.on("GET", f"{path}{QUERY}", {"status": "success", "data": {"result": []}})
    assert job.get_metrics()["source"] == path
    assert "train-worker-[0-9]+" in server.asked("GET", f"{path}{QUERY}")[0].query["query"]


def test_the_querier_of_openshift_is_found_by_its_route_and_shown_ones_own_token(server):
    server.on("GET", prometheus.ROUTE, {"spec": {"host": "thanos.apps.example"}})
    endpoint = prometheus.find_prometheus(None, None, None)
    assert (endpoint.url, endpoint.token) == ("https://thanos.apps.example", "sesame")


def test_the_querier_of_openshift_is_found_in_a_pod_by_its_account(tmp_path, monkeypatch):
    monkeypatch.setattr(prometheus, "ACCOUNT", tmp_path)
    (tmp_path / "service-ca.crt").write_text("ca")
    (tmp_path / "token").write_text("of the account\n")
    endpoint = prometheus.find_prometheus(None, None, None)
    assert endpoint.url == "https://thanos-querier.openshift-monitoring.svc:9091"
    assert (endpoint.token, endpoint.ca_file) == ("of the account", str(tmp_path / "service-ca.crt"))


@pytest.mark.parametrize("window", ["5", "0m", '5m"}', "", None])
def test_a_window_that_is_none_is_refused(job, window):
    with pytest.raises(ValueError, match="expected a duration as Prometheus writes it"):
        job.get_metrics(prometheus_url="http://127.0.0.1:1", window=window)


def test_four_queries_tell_everything(metrics_of, server):
    json.dumps(metrics_of())
    assert len(server.asked("POST", QUERY)) == 4


def test_a_kubelet_that_two_services_scrape_is_counted_once(metrics_of):
    told = [sample("container_memory_working_set_bytes", 7, container="mpi", service=one) for one in ("a", "b")]
    other = sample("container_memory_working_set_bytes", 5, container="sidecar", service="a")
    assert metrics_of(*told, other)["workers"][0]["memoryUsage"] == 12
