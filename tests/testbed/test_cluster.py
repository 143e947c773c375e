"""The cluster that tests share is a real one: pods run, names resolve, the API server reaches Services."""

import base64
import json
import shutil
import ssl
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from testbed.cluster import Cluster
from testbed.requirements import TestbedFailed
from tests.https_server import HttpsServer, Said

WEB = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  nodeName: node-1
  terminationGracePeriodSeconds: 1
  containers:
  - name: web
    image: busybox:testbed
    imagePullPolicy: Never
    command:
    - sh
    - -c
    - echo serving; mkdir /tmp/www; echo hello > /tmp/www/index.html; exec httpd -f -p 8080 -h /tmp/www
---
apiVersion: v1
kind: Service
metadata: {name: site}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
"""
OUTSIDE = """
apiVersion: v1
kind: Service
metadata: {name: outside}
spec: {ports: [{name: https, port: 443, targetPort: PORT}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: outside, labels: {kubernetes.io/service-name: outside}}
addressType: IPv4
ports: [{name: https, port: PORT, protocol: TCP}]
endpoints: [{addresses: [HOST], conditions: {ready: true}}]
"""
AGGREGATED = """
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.test.tessera.io}
spec:
  group: test.tessera.io
  version: v1
  groupPriorityMinimum: 1000
  versionPriority: 10
  insecureSkipTLSVerify: true
  service: {name: outside, namespace: default, port: 443}
"""
WEBHOOK = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: outside}
webhooks:
- name: outside.tessera.io
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {caBundle: AUTHORITY, service: {name: outside, namespace: default}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  matchConditions: [{name: ours, expression: "object.metadata.name.startsWith('refused-')"}]
"""


@pytest.fixture(scope="module")
def web(cluster: Cluster):
    """A pod behind a Service, on the real node."""
    cluster.kubectl("apply", "-f", "-", input=WEB)
    cluster.kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
    yield
    cluster.kubectl("delete", "-f", "-", "--wait=false", input=WEB)


@pytest.mark.usefixtures("web")
def test_a_pod_runs_and_its_log_and_a_shell_in_it_can_be_reached(cluster):
    assert cluster.kubectl("logs", "web") == "serving\n"
    assert cluster.kubectl("exec", "web", "--", "cat", "/tmp/www/index.html") == "hello\n"


@pytest.mark.usefixtures("web")
@pytest.mark.parametrize("name", ["site", "site.default", "site.default.svc.cluster.local"])
def test_a_pod_finds_a_service_by_name(cluster, name):
    assert cluster.kubectl("exec", "web", "--", "wget", "-qO-", f"http://{name}") == "hello\n"


@pytest.mark.usefixtures("web")
def test_the_api_server_and_the_host_reach_a_service(cluster):
    assert cluster.kubectl("get", "--raw", "/api/v1/namespaces/default/services/http:site:80/proxy/") == "hello\n"
    address = json.loads(cluster.kubectl("get", "service", "site", "-o", "json"))["spec"]["clusterIP"]
    with urllib.request.urlopen(f"http://{address}", timeout=10) as answer:
        assert answer.read() == b"hello\n"


def test_what_a_user_may_do_is_up_to_rbac(cluster):
    outsider = cluster.control_plane.kubeconfig_for("outsider")
    with pytest.raises(TestbedFailed, match='User "outsider" cannot list resource "pods"'):
        cluster.kubectl("get", "pods", kubeconfig=outsider)


def test_an_aggregated_api_is_served_by_an_endpoint_of_its_service(cluster):
    resources = {"kind": "APIResourceList", "groupVersion": "test.tessera.io/v1", "resources": []}
    with serving(cluster, lambda _: resources):
        cluster.kubectl("apply", "-f", "-", input=AGGREGATED)
        cluster.kubectl("wait", "--for=condition=Available", "apiservice/v1.test.tessera.io", "--timeout=30s")
        assert "test.tessera.io/v1" in cluster.kubectl("get", "--raw", "/apis/test.tessera.io/v1")
        cluster.kubectl("delete", "-f", "-", input=AGGREGATED)


def test_a_webhook_behind_a_service_is_asked(cluster):
    with serving(cluster, refuse):
        authority = cluster.control_plane.authority.files.certificate.read_bytes()
        webhook = WEBHOOK.replace("AUTHORITY", base64.b64encode(authority).decode())
        cluster.kubectl("apply", "-f", "-", input=webhook)
        with pytest.raises(TestbedFailed, match="the service said no"):
            until_refused(cluster)
        cluster.kubectl("delete", "-f", "-", input=webhook)


def refuse(review: Any) -> Any:
    response = {"uid": review["request"]["uid"], "allowed": False, "status": {"message": "the service said no"}}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


def until_refused(cluster: Cluster) -> None:
    """A webhook counts a moment after it was made."""
    for number in range(100):
        cluster.kubectl("create", "configmap", f"refused-{number}", "--dry-run=server")


@contextmanager
def serving(cluster: Cluster, answer: Callable[[Any], Any]) -> Iterator[None]:
    """An HTTPS server in this process, behind a Service `outside` of the cluster."""
    authority, host = cluster.control_plane.authority, cluster.machine.addresses.host
    pair = authority.issue("outside", "outside", reachable_at=["outside.default.svc"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(str(pair.certificate), str(pair.key))

    def say(_path: str, body: bytes) -> Said:
        return Said(200, json.dumps(answer(json.loads(body or b"null"))).encode())

    with HttpsServer(host, context, say).running() as server:
        service = OUTSIDE.replace("HOST", host).replace("PORT", str(server.port))
        cluster.kubectl("apply", "-f", "-", input=service)
        yield
        cluster.kubectl("delete", "-f", "-", input=service)


def test_simulated_nodes_are_ready_and_their_agents_report(cluster):
    cluster.kubectl("wait", "--for=condition=Ready", "node/gpu-0000", "node/gpu-0001", "--timeout=60s")
    annotations = json.loads(cluster.kubectl("get", "node", "gpu-0000", "-o", "json"))["metadata"]["annotations"]
    assert annotations["hami.io/node-nvidia-register"].count("NVIDIA A100-SXM4-80GB") == 8
    assert annotations["hami.io/node-handshake-nvidia"].startswith("Reported ")


def test_an_agent_answers_a_scheduler_that_asks_whether_it_lives(cluster):
    key = "hami.io/node-handshake-nvidia"
    cluster.kubectl("annotate", "node", "gpu-0001", "--overwrite", f"{key}=Requesting_2026.01.01 00:00:00")
    path = "{.metadata.annotations.hami\\.io/node-handshake-nvidia}"
    until(lambda: cluster.kubectl("get", "node", "gpu-0001", "-o", f"jsonpath={path}").startswith("Reported "))


def test_a_card_that_falls_ill_is_in_the_next_register(cluster):
    register = "jsonpath={.metadata.annotations.hami\\.io/node-nvidia-register}"
    before = cluster.kubectl("get", "node", "gpu-0000", "-o", register)
    uuid = before.partition(",")[0]
    cluster.simulated.agents.set_health("gpu-0000", uuid, healthy=False)
    after = cluster.kubectl("get", "node", "gpu-0000", "-o", register)
    assert after.count("true:") == 7
    cluster.simulated.agents.set_health("gpu-0000", uuid, healthy=True)
    assert cluster.kubectl("get", "node", "gpu-0000", "-o", register) == before


def test_a_second_cluster_runs_beside_the_first_and_survives_its_api_server(cluster, new_cluster):
    other = new_cluster(controllers=False)
    other.kubectl("create", "configmap", "kept", "--from-literal=a=b")
    apiserver = other.machine.programs["kube-apiserver"]
    apiserver.kill()
    assert cluster.kubectl("get", "--raw", "/readyz") == "ok"
    apiserver.restart()
    other.control_plane.wait_until_ready()
    assert other.kubectl("get", "configmap", "kept", "-o", "jsonpath={.data.a}") == "b"
    other.stop()
    assert not other.machine.directory.exists()


def test_agents_survive_the_api_server(new_cluster):
    other = new_cluster(simulated_nodes=1)
    apiserver = other.machine.programs["kube-apiserver"]
    apiserver.kill()
    other.simulated.agents.ask("gpu-0000")
    apiserver.restart()
    other.control_plane.wait_until_ready()
    key, path = "hami.io/node-handshake-nvidia", "{.metadata.annotations.hami\\.io/node-handshake-nvidia}"
    other.kubectl("annotate", "node", "gpu-0000", "--overwrite", f"{key}=Requesting_2026.01.01 00:00:00")
    until(lambda: other.kubectl("get", "node", "gpu-0000", "-o", f"jsonpath={path}").startswith("Reported "))
    other.stop()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it did not happen within 30 s"
        time.sleep(0.05)


def test_helm_is_there_and_reaches_the_cluster(cluster):
    assert json.loads(cluster.helm("list", "--all-namespaces", "--output", "json")) == []


def test_a_cluster_that_cannot_start_says_why_and_keeps_its_logs(capfd):
    with pytest.raises(TestbedFailed, match=r"kube-apiserver ended before it was ready(.|\n)*no-such-flag"):
        Cluster(controllers=False, apiserver_flags={"no-such-flag": "1"})
    kept = Path(capfd.readouterr().out.rpartition("The logs of the cluster are kept in ")[2].strip())
    assert "no-such-flag" in (kept / "kube-apiserver.log").read_text()
    shutil.rmtree(kept)
