"""Reading along with a pod, and reaching into it: logs, exec, proxies, port-forward."""

import functools
import re

import pytest
import urllib3

from tests.contract.objects import pod
from tests.contract.refusals import refused
from tests.contract.running import FOREVER, SHARE, SHARED, has_ended, is_ready, is_running, was_restarted
from tests.contract.waiting import eventually

pytestmark = pytest.mark.contract(area="Logs, exec and proxies", needed_by="kubectl, views")

PORT = 18080
SERVE = (
    f"mkdir -p /tmp/www && echo hello > /tmp/www/index.html && exec httpd -f -p ${{POD_IP:+$POD_IP:}}{PORT} -h /tmp/www"
)
"""At the pod's own address where an engine tells it: pods of one machine may have their ports in common."""


@pytest.mark.contract(
    promise="A log as plain text; tailLines, limitBytes, timestamps, sinceTime", needed_by="kubectl, views, MPIJob"
)
def test_a_part_of_a_log_can_be_asked_for(runner):
    assert runner.run("echo one; sleep 2; echo two; echo three") == "one\ntwo\nthree\n"
    log = functools.partial(runner.pods.get, "worker/log")
    assert log(tailLines=1) == "three\n"
    assert log(limitBytes=4) == "one\n"
    written_at, text = log(timestamps="true").splitlines()[1].split(" ", 1)
    assert text == "two"
    that_second = f"{written_at[:19]}Z"
    assert log(sinceTime=that_second) == "two\nthree\n"


@pytest.mark.contract(
    promise="follow sends lines as they are written, and ends with the container", needed_by="kubectl, MPIJob"
)
def test_a_log_can_be_followed(api, runner, kubectl):
    script = "echo one; until [ -e /shared/go ]; do sleep 0.1; done; echo two"
    runner.start(runner.container(script, **SHARE), volumes=SHARED)
    runner.wait(is_running)
    with api.stream(f"{runner.pods.path}/worker/log", query={"follow": "true"}) as lines:
        assert next(lines) == b"one\n"
        kubectl("exec", "worker", "--", "touch", "/shared/go")
        assert list(lines) == [b"two\n"]


@pytest.mark.contract(promise="With several containers one must be named: 400", needed_by="kubectl")
def test_a_container_is_chosen(runner):
    runner.start(*(runner.container(f"echo {name}", name=name) for name in ("one", "two")))
    runner.wait(has_ended)
    with refused(400, "BadRequest") as refusal:
        runner.pods.get("worker/log")
    assert "a container name must be specified for pod worker, choose one of: [one two]" in refusal.value.message
    assert runner.pods.get("worker/log", container="two") == "two\n"
    with refused(400, "BadRequest"):
        runner.pods.get("worker/log", container="three")


@pytest.mark.contract(promise="previous is the log of the container before the last restart", needed_by="kubectl")
def test_the_log_before_the_restart_is_kept(runner, kubectl):
    script = f"[ -e /shared/again ] && {{ echo second; {FOREVER}; }}; touch /shared/again; echo first; exit 1"
    container = runner.container(script, **SHARE)
    runner.start(container, volumes=SHARED, restartPolicy="OnFailure")
    runner.wait(lambda pod: was_restarted(pod) and is_ready(pod))
    assert kubectl("logs", "worker", "--previous") == "first\n"
    eventually(lambda: kubectl("logs", "worker") == "second\n")


@pytest.mark.contract(promise="The log of a container that waits to start is 400", needed_by="kubectl, views, MPIJob")
def test_a_container_that_has_not_started_has_no_log(runner):
    runner.start(runner.container("true", image="registry.invalid/none"))
    runner.wait(lambda pod: pod["status"].get("containerStatuses"))
    with refused(400, "BadRequest") as refusal:
        runner.pods.get("worker/log")
    assert 'container "main" in pod "worker" is waiting to start' in refusal.value.message


@pytest.mark.contract(promise="The log of a pod that has no node is empty; that of no pod is 404")
def test_a_pod_without_a_node_has_an_empty_log(pods):
    pods.create(pod("worker"))
    assert pods.get("worker/log") == ""
    with refused(404, "NotFound"):
        pods.get("absent/log")


@pytest.mark.contract(promise="`logs -f` follows to the end")
def test_kubectl_follows_a_log(runner, kubectl):
    runner.start("echo one; sleep 1; echo two")
    runner.wait(is_running)
    with kubectl.running("logs", "-f", "worker") as lines:
        assert lines.read() == "one\ntwo\n"


@pytest.mark.contract(
    promise="`exec` runs a command, passes stdin, and ends with its exit code", needed_by="kubectl, operators"
)
def test_exec_runs_a_command_in_the_container(runner, kubectl):
    runner.start(FOREVER)
    runner.wait(is_running)
    assert kubectl("exec", "worker", "--", "sh", "-c", "echo out; echo err >&2") == "out\n"
    assert kubectl("exec", "-i", "worker", "--", "cat", input="from outside") == "from outside"
    assert "command terminated with exit code 3" in kubectl.refusal("exec", "worker", "--", "sh", "-c", "exit 3")


@pytest.mark.usefixtures("runner")
@pytest.mark.contract(promise="`run -i --rm` passes stdin to its end, shows what comes of it, and clears up")
def test_a_pod_is_run_for_what_it_makes_of_its_input(engine, kubectl, pods):
    how = ("-i", "--rm", "--quiet", "--restart=Never", "--image-pull-policy=Never", f"--image={engine.image}")
    assert kubectl("run", "shout", *how, "--command", "--", "tr", "a-z", "A-Z", input="one\ntwo\n") == "ONE\nTWO\n"
    eventually(lambda: pods.names() == [])


@pytest.mark.contract(promise="`attach -i` types into a container; its input stays open unless it is for one time only")
def test_two_type_into_a_container_one_after_the_other(runner, kubectl, pods):
    runner.start(runner.container("read -r a; echo got $a; read -r b; echo got $b", stdin=True))
    runner.wait(is_running)
    kubectl("attach", "-i", "worker", input="one\n")
    eventually(lambda: pods.get("worker/log") == "got one\n")
    kubectl("attach", "-i", "worker", input="two\n")
    runner.wait(has_ended)
    assert pods.get("worker/log") == "got one\ngot two\n"


@pytest.fixture
def web(runner, api, namespace):
    """A pod that serves a page, behind a Service."""
    runner.start(SERVE, name="web", metadata={"labels": {"app": "web"}})
    port = {"name": "http", "port": 80, "targetPort": PORT}
    spec = {"selector": {"app": "web"}, "ports": [port]}
    api.collection("services", namespace).create({"metadata": {"name": "web"}, "spec": spec})
    runner.wait(is_ready, name="web")


@pytest.mark.usefixtures("web")
@pytest.mark.contract(
    promise="The API server fetches pages from a pod and from a Service, by port name or number", needed_by="views"
)
def test_pages_are_fetched_through_the_api_server(api, namespace):
    base = f"/api/v1/namespaces/{namespace}"
    assert eventually(lambda: page(api, f"{base}/pods/http:web:{PORT}/proxy/index.html")) == "hello\n"
    for port in ("http", "80"):
        assert eventually(lambda port=port: page(api, f"{base}/services/http:web:{port}/proxy/")) == "hello\n"
    assert api.send("GET", f"{base}/services/http:web:http/proxy/absent").status == 404


def page(api, path):
    answer = api.send("GET", path)
    return answer.body if answer.status == 200 else None


@pytest.mark.contract(promise="A Service without endpoints is 503 through the proxy", needed_by="views")
def test_a_service_without_pods_is_unavailable(api, namespace):
    spec = {"selector": {"app": "none"}, "ports": [{"port": 80}]}
    api.collection("services", namespace).create({"metadata": {"name": "empty"}, "spec": spec})
    path = f"/api/v1/namespaces/{namespace}/services/http:empty:80/proxy/"
    # The proxy learns of a new Service by watching, as everybody does.
    eventually(lambda: api.send("GET", path).status != 404)
    with refused(503, "ServiceUnavailable") as refusal:
        api.get(path)
    assert refusal.value.message == 'no endpoints available for service "empty"'


@pytest.mark.usefixtures("web")
@pytest.mark.contract(promise="`port-forward` to a pod and to a Service", needed_by="kubectl, Compute")
@pytest.mark.parametrize(("target", "port"), [("pod/web", PORT), ("svc/web", 80)], ids=["pod", "service"])
def test_a_port_is_forwarded(kubectl, target, port):
    with kubectl.running("port-forward", target, f":{port}") as lines:
        told = lines.readline()
        local = re.search(r"127\.0\.0\.1:(\d+) ->", told)
        assert local, told
        answer = eventually(lambda: fetch(f"http://127.0.0.1:{local[1]}/index.html"))
    assert answer == b"hello\n"


def fetch(url):
    try:
        return urllib3.request("GET", url, retries=False, timeout=5).data
    except urllib3.exceptions.HTTPError:
        return None


@pytest.mark.usefixtures("web")
@pytest.mark.contract(
    promise="A pod reaches a Service by its name in the cluster", needed_by="operators, Compute, MPIJob"
)
def test_a_service_has_a_name(runner, namespace):
    url = f"http://web.{namespace}.svc.cluster.local/index.html"
    assert runner.run(f"until wget -q -O - {url}; do sleep 0.1; done").endswith("hello\n")
