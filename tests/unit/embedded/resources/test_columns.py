"""What kubectl prints: the cells of each kind's table."""

from datetime import datetime

import pytest

from tessera.embedded.resources import Registry
from tessera.embedded.resources.columns import duration, since
from tests.unit.embedded.resources.making import created, definition, pod, served, workload

NOW = datetime.fromisoformat("2026-01-02T04:04:05+00:00")  # an hour after the objects were made
PODS = served("pods")


def row(kind, document):
    return {column.name: column.cell(document, NOW) for column in kind.columns}


def container(**fields):
    return {"name": "main", "ready": False, "restartCount": 0, "state": {}} | fields


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ({"phase": "Pending"}, ("0/1", "Pending", "0")),
        (
            {"phase": "Pending", "containerStatuses": [container(state={"waiting": {"reason": "ErrImagePull"}})]},
            ("0/1", "ErrImagePull", "0"),
        ),
        (
            {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True"}],
                "containerStatuses": [
                    container(
                        ready=True,
                        restartCount=2,
                        state={"running": {}},
                        lastState={"terminated": {"finishedAt": "2026-01-02T03:07:05Z"}},
                    )
                ],
            },
            ("1/1", "Running", "2 (57m ago)"),
        ),
        ({"phase": "Failed", "reason": "DeadlineExceeded"}, ("0/1", "DeadlineExceeded", "0")),
        (
            {
                "phase": "Succeeded",
                "containerStatuses": [container(state={"terminated": {"exitCode": 0, "reason": "Completed"}})],
            },
            ("0/1", "Completed", "0"),
        ),
        (
            {"phase": "Failed", "containerStatuses": [container(state={"terminated": {"exitCode": 3}})]},
            ("0/1", "ExitCode:3", "0"),
        ),
    ],
)
def test_a_pod_is_summed_up_in_a_word(status, shown):
    cells = row(PODS, created(PODS, pod()) | {"status": status})
    assert (cells["Ready"], cells["Status"], cells["Restarts"]) == shown


def test_a_pod_that_goes_says_so():
    made = created(PODS, pod(spec={"nodeName": "node-a"}))
    made["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    assert row(PODS, made)["Status"] == "Terminating"


def test_a_pod_that_is_gated_says_so():
    made = created(PODS, pod(spec={"schedulingGates": [{"name": "a"}], "readinessGates": [{"conditionType": "a.b/c"}]}))
    cells = row(PODS, made)
    assert (cells["Status"], cells["Readiness Gates"]) == ("SchedulingGated", "0/1")


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ({"state": {"running": {}}}, "Init:0/1"),
        ({"state": {"waiting": {"reason": "ErrImagePull"}}}, "Init:ErrImagePull"),
        ({"state": {"terminated": {"exitCode": 2}}}, "Init:ExitCode:2"),
        ({"state": {"terminated": {"exitCode": 0}}}, "Pending"),
    ],
)
def test_a_pod_whose_init_containers_run_says_how_far_it_is(status, word):
    made = created(PODS, pod(spec={"initContainers": [{"name": "i", "image": "a:1"}]}))
    made["status"]["initContainerStatuses"] = [{"name": "i"} | status]
    assert row(PODS, made)["Status"] == word


def test_sidecars_count_among_the_ready():
    sidecar = {"name": "s", "image": "a:1", "restartPolicy": "Always"}
    made = created(PODS, pod(spec={"initContainers": [sidecar]}))
    assert row(PODS, made)["Ready"] == "0/2"


def test_the_first_columns_of_a_pod_are_those_that_people_know():
    assert [column.name for column in PODS.columns][:5] == ["Name", "Ready", "Status", "Restarts", "Age"]
    assert [column.priority for column in PODS.columns] == [0, 0, 0, 0, 0, 1, 1, 1, 1]
    cells = row(PODS, created(PODS, pod()))
    assert (cells["Name"], cells["Age"], cells["IP"], cells["Node"]) == ("worker", "60m", "<none>", "<none>")


def test_a_workload_shows_its_numbers():
    kind = served("deployments", "apps")
    made = created(kind, workload(replicas=3)) | {"status": {"readyReplicas": 2, "availableReplicas": 1}}
    cells = row(kind, made)
    assert (cells["Ready"], cells["Up-to-date"], cells["Available"]) == ("2/3", 0, 1)
    assert (cells["Images"], cells["Selector"]) == ("registry.invalid/none", "app=web")


def test_a_job_shows_how_long_it_took():
    kind = served("jobs", "batch")
    template = workload()["spec"]["template"]
    template["spec"]["restartPolicy"] = "Never"
    made = created(kind, {"metadata": {"name": "once"}, "spec": {"template": template}})
    times = {"startTime": "2026-01-02T03:04:05Z", "completionTime": "2026-01-02T03:04:15Z"}
    done = times | {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}
    cells = row(kind, made | {"status": done})
    assert (cells["Status"], cells["Completions"], cells["Duration"]) == ("Complete", "1/1", "10s")
    assert row(kind, made)["Status"] == "Running"


def test_a_node_shows_whether_it_is_ready_and_takes_pods():
    kind = served("nodes")
    made = created(kind, {"metadata": {"name": "node-a", "labels": {"node-role.kubernetes.io/worker": ""}}})
    assert (row(kind, made)["Status"], row(kind, made)["Roles"]) == ("Unknown", "worker")
    made["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    made["spec"]["unschedulable"] = True
    assert row(kind, made)["Status"] == "Ready,SchedulingDisabled"


def test_a_service_shows_where_it_is():
    kind = served("services")
    spec = {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}], "clusterIP": "10.0.0.7"}
    cells = row(kind, created(kind, {"metadata": {"name": "web"}, "spec": spec}))
    assert (cells["Cluster-IP"], cells["External-IP"], cells["Port(s)"]) == ("10.0.0.7", "<none>", "80:30080/TCP")


def test_an_event_shows_when_how_often_and_of_what():
    kind = served("events")
    about = {"kind": "Pod", "name": "worker"}
    seen = {"firstTimestamp": "2026-01-02T02:04:05Z", "lastTimestamp": "2026-01-02T04:04:00Z", "count": 3}
    event = {"metadata": {"name": "e"}, "involvedObject": about, "message": "to node-a \n", "reason": "Bound"} | seen
    cells = row(kind, created(kind, event))
    assert (cells["Last Seen"], cells["First Seen"], cells["Count"]) == ("5s", "120m", 3)
    assert (cells["Object"], cells["Message"]) == ("pod/worker", "to node-a")


def test_printer_columns_of_a_definition_are_the_columns_of_its_objects():
    columns = [
        {"name": "Count", "type": "integer", "jsonPath": ".spec.count"},
        {"name": "Owner", "type": "string", "jsonPath": ".metadata.labels.owner", "priority": 1},
        {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    crds = served("customresourcedefinitions", "apiextensions.k8s.io")
    kind = Registry([created(crds, definition(additionalPrinterColumns=columns))]).find("lab.example", "v1", "widgets")
    assert kind is not None
    assert [column.definition()["priority"] for column in kind.columns] == [0, 0, 1, 0, 0]
    ready = [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]
    made = created(kind, {"metadata": {"name": "w"}, "spec": {"count": 2}, "status": {"conditions": ready}})
    assert row(kind, made) == {"Name": "w", "Count": 2, "Owner": None, "Ready": "True", "Age": "60m"}


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "<invalid>"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (200, "3m20s"),
        (3600, "60m"),
        (4 * 3600 + 60, "4h1m"),
        (30 * 3600, "30h"),
        (3 * 86400 + 3600, "3d1h"),
        (30 * 86400, "30d"),
        (3 * 365 * 86400, "3y"),
    ],
)
def test_an_age_is_as_short_as_it_can_be(seconds, shown):
    assert duration(seconds) == shown


def test_what_has_no_time_has_no_age():
    assert since(None, NOW) == since("soon", NOW) == "<unknown>"
