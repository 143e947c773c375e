"""Pods that really run: how they start, what they are given, how they end."""

from typing import Any

import pytest

from tests.contract.api import MERGE_PATCH
from tests.contract.objects import config_map, deployment, pod
from tests.contract.running import FOREVER, SHARE, SHARED, has_ended, has_node, is_ready, is_running, was_restarted
from tests.contract.waiting import eventually
from tests.operators.compute_life import HEALTH_SERVER

pytestmark = pytest.mark.contract(area="Running pods", needed_by="node, operators")


@pytest.mark.contract(
    promise="A pod whose containers end well is Succeeded, with exit codes and times", needed_by="node, MPIJob"
)
def test_a_pod_that_ends_well_has_succeeded(runner):
    runner.start("exit 0")
    ended = runner.wait(has_ended)
    terminated = ended["status"]["containerStatuses"][0]["state"]["terminated"]
    assert ended["status"]["phase"] == "Succeeded"
    assert (terminated["exitCode"], terminated["reason"]) == (0, "Completed")
    assert terminated["startedAt"] <= terminated["finishedAt"]


@pytest.mark.contract(promise="A pod whose container fails is Failed, with the exit code", needed_by="node, MPIJob")
def test_a_pod_that_ends_badly_has_failed(runner):
    runner.start("exit 3")
    ended = runner.wait(has_ended)
    assert ended["status"]["phase"] == "Failed"
    assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3


@pytest.mark.contract(
    promise="A running pod has a node, an address, a start time and is Ready", needed_by="views, MPIJob"
)
def test_a_running_pod_says_where_it_is(runner):
    runner.start(FOREVER)
    status = runner.wait(is_ready)["status"]
    assert status["phase"] == "Running"
    assert status["podIP"]
    assert status["hostIP"]
    assert status["startTime"]
    assert "running" in status["containerStatuses"][0]["state"]


@pytest.mark.contract(
    promise="A deleted pod is told to stop, and is gone when its processes are", needed_by="scheduler, node"
)
def test_a_deleted_pod_goes_when_it_has_stopped(runner):
    runner.start(FOREVER)
    running = runner.wait(is_running)
    with runner.pods.watch(resourceVersion=running["metadata"]["resourceVersion"]) as watch:
        runner.pods.delete("worker")
        watch.until(lambda event: "deletionTimestamp" in event.object["metadata"])
        gone = watch.until(lambda event: event.type == "DELETED")
    assert "terminated" in gone.object["status"]["containerStatuses"][0]["state"]


@pytest.mark.contract(
    promise="A container that fails is started again where the pod says so, and counted", needed_by="operators"
)
def test_a_failed_container_is_started_again(runner):
    runner.start("exit 1", restartPolicy="OnFailure")
    restarted = runner.wait(was_restarted)
    assert restarted["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 1


@pytest.mark.contract(promise="activeDeadlineSeconds ends a pod as Failed with DeadlineExceeded", needed_by="MPIJob")
def test_a_pod_has_a_deadline(runner):
    runner.start(FOREVER, activeDeadlineSeconds=1)
    assert runner.wait(has_ended)["status"]["reason"] == "DeadlineExceeded"


@pytest.mark.contract(
    promise="An image that the node does not have leaves the container waiting, with the reason",
    needed_by="views, MPIJob",
)
def test_an_absent_image_is_a_reason_to_wait(runner):
    runner.start(runner.container("true", image="registry.invalid/none"))

    def waiting(pod):
        statuses = pod["status"].get("containerStatuses", [])
        return statuses and statuses[0]["state"].get("waiting", {}).get("reason") == "ErrImageNeverPull"

    assert runner.wait(waiting)["status"]["phase"] == "Pending"


@pytest.mark.contract(promise="Init containers run first, in order, each to its end", needed_by="operators")
def test_init_containers_come_first(runner):
    first = [runner.container(f"echo {name} >> /shared/order", name=name, **SHARE) for name in ("one", "two")]
    main = runner.container("cat /shared/order", **SHARE)
    assert runner.run(main, initContainers=first, volumes=SHARED) == "one\ntwo\n"
    statuses = runner.pods.get("worker")["status"]
    assert [one["ready"] for one in statuses["initContainerStatuses"]] == [True, True]
    assert [one["ready"] for one in statuses["containerStatuses"]] == [False]


@pytest.mark.contract(
    promise="Environment: values, references between them, fields of the pod, ConfigMaps and Secrets",
    needed_by="operators, node, Compute",
)
def test_the_environment_comes_from_many_places(runner, api, namespace, config_maps):
    config_maps.create(config_map("settings", {"COLOUR": "red"}))
    api.collection("secrets", namespace).create({"metadata": {"name": "key"}, "stringData": {"token": "abc"}})
    env = [
        {"name": "PLAIN", "value": "1"},
        {"name": "REFERENCE", "value": "$(PLAIN)2"},
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "GPUS", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['gpu.scheduling/allocated']"}}},
        {"name": "ONE", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "COLOUR"}}},
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "key", "key": "token"}}},
    ]
    script = "echo $PLAIN $REFERENCE $POD $GPUS $ONE $TOKEN $COLOUR"
    container = runner.container(script, env=env, envFrom=[{"configMapRef": {"name": "settings"}}])
    allocated = {"gpu.scheduling/allocated": "node-a:0,1"}
    printed = runner.run(container, metadata={"annotations": allocated})
    assert printed == "1 12 worker node-a:0,1 red abc red\n"


@pytest.mark.contract(promise="ConfigMaps and Secrets are mounted as files", needed_by="operators, MPIJob")
def test_config_maps_and_secrets_become_files(runner, api, namespace, config_maps):
    config_maps.create(config_map("hosts", {"hostfile": "worker-0 slots=1"}))
    api.collection("secrets", namespace).create({"metadata": {"name": "key"}, "stringData": {"id": "abc"}})
    mounts = [{"name": "hosts", "mountPath": "/etc/mpi"}, {"name": "key", "mountPath": "/etc/key"}]
    container = runner.container("cat /etc/mpi/hostfile /etc/key/id", volumeMounts=mounts)
    volumes = [
        {"name": "hosts", "configMap": {"name": "hosts"}},
        {"name": "key", "secret": {"secretName": "key", "defaultMode": 0o400}},
    ]
    assert runner.run(container, volumes=volumes) == "worker-0 slots=1abc"


@pytest.mark.contract(
    promise="A pod finds its ServiceAccount's token, namespace and authority, and the server's address",
    needed_by="operators, Compute",
)
def test_a_pod_can_speak_to_the_api(runner, namespace):
    where = "/var/run/secrets/kubernetes.io/serviceaccount"
    script = f"cat {where}/namespace; echo; grep -c BEGIN {where}/ca.crt; cut -d. -f2 {where}/token | wc -l;"
    script += " echo ${KUBERNETES_SERVICE_HOST:+known}"
    assert runner.run(script).split() == [namespace, "1", "1", "known"]


@pytest.mark.contract(promise="A readiness probe decides when a pod is Ready", needed_by="operators, Compute")
def test_a_probe_decides_readiness(runner, kubectl):
    probe = {"exec": {"command": ["cat", "/shared/ready"]}, "periodSeconds": 1}
    runner.start(runner.container(FOREVER, readinessProbe=probe, **SHARE), volumes=SHARED)
    assert not is_ready(runner.wait(is_running))
    kubectl("exec", "worker", "--", "touch", "/shared/ready")
    runner.wait(is_ready)


@pytest.mark.contract(
    promise="A probe by gRPC asks the health service, and events say why it failed", needed_by="operators, Compute"
)
def test_a_grpc_probe_asks_the_health_service(engine, runner, kubectl):
    address = {"name": "KPU_HOST", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    for name, answer in (("serving", "1"), ("not-serving", "2")):
        container = runner.container("", **engine.run_python(HEALTH_SERVER))
        env = [address, {"name": "KPU_HEALTH", "value": answer}]
        probe = {"grpc": {"port": 50051, "service": "any"}, "periodSeconds": 1, "timeoutSeconds": 5}
        runner.start({**container, "env": env, "readinessProbe": probe}, name=name)
    runner.wait(is_ready, name="serving")
    why = 'Readiness probe failed: service unhealthy (responded with "NOT_SERVING")'
    about = ("events", "--field-selector=reason=Unhealthy,involvedObject.name=not-serving", "-o")
    eventually(lambda: why in kubectl("get", *about, "jsonpath={.items[*].message}"))
    assert not is_ready(runner.pods.get("not-serving"))


@pytest.mark.contract(
    promise="A Job runs its pod to the end; its log is found by the job's name", needed_by="kubectl, MPIJob"
)
def test_a_job_runs_to_its_end(runner, kubectl, api, namespace):
    template = {"spec": runner.spec(runner.container("echo done"))}
    api.collection("batch/v1/jobs", namespace).create({"metadata": {"name": "once"}, "spec": {"template": template}})
    kubectl("wait", "job/once", "--for=condition=complete", "--timeout=60s")
    assert kubectl("logs", "job/once") == "done\n"


@pytest.mark.contract(
    promise="A Deployment of running pods becomes ready, and `rollout status` says so",
    needed_by="kubectl, helm, Compute",
)
def test_a_deployment_becomes_ready(runner, kubectl, deployments):
    web = deployment("web")
    web["spec"]["template"]["spec"] = runner.spec(runner.container(f"echo here; {FOREVER}"), restartPolicy="Always")
    deployments.create(web)
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    assert deployments.get("web")["status"]["readyReplicas"] == 1
    assert kubectl("logs", "deployment/web") == "here\n"


@pytest.mark.contract(
    promise="A DaemonSet has a pod on each node that its template may be on; `rollout status` follows a new template",
    needed_by="kubectl, helm, node",
)
def test_a_daemon_set_has_a_pod_on_each_node(runner, kubectl, api, namespace, unique):
    nodes, sets = api.collection("nodes"), api.collection("apps/v1/daemonsets", namespace)
    agent: dict[str, Any] = deployment("agent") | {"kind": "DaemonSet"}
    del agent["spec"]["replicas"]
    pods = runner.spec(runner.container(FOREVER), restartPolicy="Always", nodeSelector={"contract.example/run": unique})
    agent["spec"]["template"]["spec"] = pods
    sets.create(agent)
    eventually(lambda: sets.get("agent")["status"].get("observedGeneration"))
    assert sets.get("agent")["status"]["desiredNumberScheduled"] == 0
    for name in nodes.names():
        nodes.patch(name, MERGE_PATCH, {"metadata": {"labels": {"contract.example/run": unique}}})
    eventually(lambda: sets.get("agent")["status"].get("numberAvailable") == len(nodes.names()))
    first = runner.pods.listing()["items"]
    assert sorted(one["spec"]["nodeName"] for one in first) == nodes.names()
    assert first[0]["metadata"]["ownerReferences"][0]["kind"] == "DaemonSet"
    added = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    assert added in first[0]["spec"]["tolerations"]
    version = {"spec": {"template": {"metadata": {"labels": {"version": "2"}}}}}
    sets.patch("agent", MERGE_PATCH, version)
    assert "successfully rolled out" in kubectl("rollout", "status", "daemonset/agent", "--timeout=60s")
    eventually(lambda: not {one["metadata"]["name"] for one in first} & set(runner.pods.names()))
    for name in nodes.names():
        nodes.patch(name, MERGE_PATCH, {"metadata": {"labels": {"contract.example/run": None}}})
    eventually(lambda: runner.pods.names() == [])


@pytest.mark.contract(
    promise="A Job's podFailurePolicy ends it at an exit code that more tries would not mend", needed_by="MPIJob"
)
def test_a_job_fails_at_once_with_an_exit_code_that_its_policy_names(runner, api, namespace):
    jobs = api.collection("batch/v1/jobs", namespace)
    rule = {"action": "FailJob", "onExitCodes": {"containerName": "main", "operator": "In", "values": [42]}}
    template = {"spec": runner.spec(runner.container("exit 42"))}
    jobs.create({"metadata": {"name": "doomed"}, "spec": {"template": template, "podFailurePolicy": {"rules": [rule]}}})

    def failed():
        conditions = jobs.get("doomed").get("status", {}).get("conditions", [])
        return [one for one in conditions if (one["type"], one["status"]) == ("Failed", "True")]

    said = eventually(failed)[0]
    assert said["reason"] == "PodFailurePolicy"
    pod = runner.pods.names()[0]
    assert said["message"] == (
        f"Container main for pod {namespace}/{pod} failed with exit code 42 matching FailJob rule at index 0"
    )


@pytest.mark.contract(promise="What a controller may not create is told by an event FailedCreate", needed_by="views")
def test_a_pod_that_may_not_be_made_is_told_of(api, namespace, deployments, pods):
    api.collection("resourcequotas", namespace).create({"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}})
    eventually(lambda: api.collection("resourcequotas", namespace).get("none")["status"].get("hard"))
    events = api.collection("events", namespace)
    sets = api.collection("apps/v1/statefulsets", namespace)
    jobs = api.collection("batch/v1/jobs", namespace)
    deployments.create(deployment("web"))
    sets.create(deployment("db") | {"kind": "StatefulSet"})
    jobs.create(
        {
            "metadata": {"name": "once"},
            "spec": {"template": {"spec": pod("x", spec={"restartPolicy": "Never"})["spec"]}},
        }
    )
    for kind in ("ReplicaSet", "StatefulSet", "Job"):
        selector = f"reason=FailedCreate,involvedObject.kind={kind}"
        told = eventually(lambda selector=selector: events.listing(fieldSelector=selector)["items"])[0]
        assert told["type"] == "Warning"
        assert "exceeded quota: none" in told["message"]
    assert pods.names() == []


@pytest.mark.contract(
    promise="Two pods that want one hostPort are not put on one node, and events say why", needed_by="scheduler"
)
def test_a_port_of_a_node_is_given_once(runner, api, reasons_to_wait):
    listening = runner.container(FOREVER, ports=[{"containerPort": 80, "hostPort": 18081}])
    runner.start(listening, name="first")
    node = runner.wait(has_node, name="first")["spec"]["nodeName"]
    here = {"kubernetes.io/hostname": api.collection("nodes").get(node)["metadata"]["labels"]["kubernetes.io/hostname"]}
    runner.start(listening, name="second", nodeSelector=here)
    assert "didn't have free ports for the requested pod ports" in reasons_to_wait("second")
    runner.pods.delete("first")
    runner.wait(has_node, name="second")


@pytest.mark.contract(
    promise="A taint NoExecute drives off pods that do not tolerate it, others when their time is over",
    needed_by="scheduler, node",
)
def test_a_node_is_cleared_by_a_taint(runner, api, unique):
    bears = {"key": unique, "operator": "Exists", "effect": "NoExecute"}
    runner.start(FOREVER, name="first")
    node = runner.wait(is_running, name="first")["spec"]["nodeName"]
    here = {"kubernetes.io/hostname": api.collection("nodes").get(node)["metadata"]["labels"]["kubernetes.io/hostname"]}
    runner.start(FOREVER, name="stays", nodeSelector=here, tolerations=[bears])
    runner.start(FOREVER, name="goes", nodeSelector=here, tolerations=[bears | {"tolerationSeconds": 2}])
    for name in ("stays", "goes"):
        runner.wait(is_running, name=name)
    nodes = api.collection("nodes")
    taints = nodes.get(node)["spec"].get("taints") or []
    nodes.patch(node, MERGE_PATCH, {"spec": {"taints": [*taints, {"key": unique, "effect": "NoExecute"}]}})
    try:
        eventually(lambda: "first" not in runner.pods.names())
        eventually(lambda: runner.pods.names() == ["stays"])
    finally:
        nodes.patch(node, MERGE_PATCH, {"spec": {"taints": taints or None}})


@pytest.mark.contract(
    promise="A pod that asks for more of an extended resource than is free waits, and events say why",
    needed_by="scheduler, views",
)
def test_a_pod_waits_for_an_extended_resource(runner, api, unique, reasons_to_wait):
    resource = f"contract.example/{unique}"
    runner.start(FOREVER, name="scout")
    node = runner.wait(is_running, name="scout")["spec"]["nodeName"]
    patch = {"status": {"capacity": {resource: "1"}, "allocatable": {resource: "1"}}}
    api.collection("nodes").patch(f"{node}/status", MERGE_PATCH, patch)
    greedy = runner.container(FOREVER, resources={"limits": {resource: "1"}})
    runner.start(greedy, name="first")
    runner.wait(is_running, name="first")
    runner.start(greedy, name="second")
    assert f"Insufficient {resource}" in reasons_to_wait("second")
    runner.pods.delete("first")
    assert runner.wait(is_running, name="second")["spec"]["nodeName"] == node


@pytest.mark.contract(
    promise="A pod whose nodeSelector matches no node waits, and events say why", needed_by="scheduler, MPIJob"
)
def test_a_pod_waits_for_a_node_with_its_labels(runner, unique, reasons_to_wait):
    runner.start(FOREVER, nodeSelector={"contract.example/run": unique})
    assert "didn't match Pod's node affinity/selector" in reasons_to_wait("worker")
    assert runner.pods.get("worker")["status"]["phase"] == "Pending"


@pytest.fixture
def reasons_to_wait(api, namespace):
    """What the scheduler says of a pod that it could not place."""
    events = api.collection("events", namespace)

    def told(name):
        selector = f"involvedObject.name={name},reason=FailedScheduling"
        return eventually(lambda: events.listing(fieldSelector=selector)["items"])[0]["message"]

    return told
