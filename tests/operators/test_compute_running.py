"""Computes that really run, on both engines: how they become ready, change, go, and say why they are not ready."""

import json
import re
from collections.abc import Iterator

import pytest

from tests.contract.command_line import CommandLine
from tests.contract.waiting import eventually
from tests.operators.compute_life import (
    ENGINES,
    IMAGE,
    ComputeEngine,
    Computes,
    condition_of,
    own_namespace,
    running_engine,
)

NOWHERE = "127.0.0.1:1/nobody/has-this:1"
pytestmark = pytest.mark.timeout(240, func_only=True)


compute_engine = pytest.fixture(scope="module", params=ENGINES)(running_engine)


@pytest.fixture
def kubectl(compute_engine: ComputeEngine) -> Iterator[CommandLine]:
    """In a namespace of the test's own."""
    with own_namespace(compute_engine) as kubectl:
        yield kubectl


@pytest.fixture(scope="module", autouse=True)
def troubled(compute_engine: ComputeEngine) -> Computes:
    """Computes whose trouble takes a while: it begins before the first test, and is over for the last."""
    compute_engine.kubectl("create", "namespace", "troubled")
    computes = Computes(compute_engine.kubectl.within("troubled"), compute_engine.python)
    computes.apply("homeless", {"image": NOWHERE})
    computes.apply("giant", computes.serving(resources={"cpu": "1000"}))
    computes.apply("crashing", computes.running("import sys; print('no such weights'); sys.exit(7)"))
    return computes


@pytest.fixture
def computes(compute_engine: ComputeEngine, kubectl: CommandLine) -> Computes:
    return Computes(kubectl, compute_engine.python)


def test_a_compute_becomes_ready_by_its_servers_own_word_and_tells_where_it_is(computes: Computes):
    computes.apply("demo", computes.serving())
    compute = computes.until_ready("demo")
    service = json.loads(computes.kubectl("get", "service", "demo", "-o", "json"))
    first = compute["status"]["addresses"][0]
    assert first == {"type": "IPAddress", "value": service["spec"]["clusterIP"], "port": 50051}
    assert "grpc" in computes.pod("demo")["spec"]["containers"][0]["readinessProbe"]
    assert computes.kubectl("get", "compute", "demo").splitlines()[1].split()[:2] == ["demo", "Ready"]


def test_a_server_that_does_not_serve_is_not_ready_until_it_does(computes: Computes):
    computes.apply("demo", computes.serving(env=[{"name": "KPU_HEALTH", "value": "2"}]))
    probed = computes.until("demo", lambda one: "readiness probe" in condition_of(one, "Ready")["message"])
    assert condition_of(probed, "Ready")["reason"] == "StatefulSetNotReady"
    told = 'service unhealthy (responded with "NOT_SERVING")'
    eventually(
        lambda: (
            told
            in computes.kubectl("get", "events", "--field-selector=reason=Unhealthy", "-o", "json").replace('\\"', '"')
        )
    )
    computes.change("demo", {"env": [{"name": "KPU_HEALTH", "value": "1"}]})
    computes.until_ready("demo")


def test_the_image_of_the_examples_is_the_tensor_server(computes: Computes):
    computes.apply("demo", {"image": IMAGE, "env": [{"name": "LOG_LEVEL", "value": "DEBUG"}]})
    computes.until_ready("demo")
    assert "command" not in computes.pod("demo")["spec"]["containers"][0]


@pytest.mark.parametrize("compute_engine", ["embedded"], indirect=True)
def test_a_compute_with_a_part_of_a_card_draws_on_the_ledger(computes: Computes):
    part = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 50000}
    computes.apply("first", computes.serving(resources=part))
    computes.until_ready("first")
    annotations = computes.pod("first")["metadata"]["annotations"]
    assert ",50000," in annotations["hami.io/vgpu-devices-allocated"]
    computes.apply("second", computes.serving(resources=part))
    said = computes.until_reason("second", "Unschedulable")
    assert "no card has 50000 MiB free, the roomiest has 31920 MiB" in said["message"]
    assert computes.condition("second", "Stalled")["status"] == "False", "it would fit when the first is gone"
    computes.kubectl("delete", "compute", "first", "--wait=false")
    computes.until_ready("second")


def test_the_longest_name_runs_too(computes: Computes):
    name = "a" * 63
    computes.apply(name, computes.serving())
    computes.until_ready(name)


def test_several_computes_run_beside_each_other(computes: Computes):
    names = ("one", "two", "three")
    for name in names:
        computes.apply(name, computes.serving())
    addresses = {computes.until_ready(name)["status"]["addresses"][0]["value"] for name in names}
    assert len(addresses) == len(names)


def test_a_compute_is_suspended_and_comes_back(computes: Computes):
    computes.apply("demo", computes.serving())
    computes.until_ready("demo")
    token = computes.kubectl("get", "secret", "demo-token", "-o", "jsonpath={.data.token}")
    computes.change("demo", {"suspend": True})
    computes.until("demo", lambda one: condition_of(one, "Suspended")["status"] == "True")
    assert computes.condition("demo", "Ready")["reason"] == "Suspended"
    eventually(lambda: not computes.kubectl("get", "pods", "-o", "name"), timeout_s=60)
    computes.change("demo", {"suspend": False})
    computes.until_ready("demo")
    assert computes.kubectl("get", "secret", "demo-token", "-o", "jsonpath={.data.token}") == token


def test_a_change_rolls_out_and_is_not_called_ready_before(computes: Computes):
    computes.apply("demo", computes.serving())
    computes.until_ready("demo")
    before = computes.pod("demo")["metadata"]["uid"]
    computes.change("demo", {"env": [{"name": "ROUND", "value": "2"}]})
    computes.until_ready("demo")
    pod = computes.pod("demo")
    assert pod["metadata"]["uid"] != before
    assert {"name": "ROUND", "value": "2"} in pod["spec"]["containers"][0]["env"]


def test_a_pod_that_never_became_ready_does_not_hold_up_what_mends_it(computes: Computes):
    computes.apply("demo", {"image": NOWHERE})
    computes.until_reason("demo", "ImagePullFailed")
    computes.change("demo", computes.serving())
    computes.until_ready("demo")
    assert computes.condition("demo", "Stalled")["status"] == "False"


def test_an_image_that_is_nowhere_is_named_and_given_up_after_a_while(troubled: Computes):
    said = troubled.until_stalled("homeless", within_s=120)
    assert said["reason"] == troubled.condition("homeless", "Ready")["reason"] == "ImagePullFailed"
    assert NOWHERE in said["message"]


def test_a_server_that_crashes_is_told_with_its_exit_code_and_last_words(troubled: Computes):
    said = troubled.until_stalled("crashing", within_s=150)
    assert said["reason"] == troubled.condition("crashing", "Ready")["reason"] == "CrashLooping"
    expected = (
        r"container server ended with exit code 7 \(Error\), it has been started anew (\d) times: no such weights"
    )
    told = re.fullmatch(expected, said["message"])
    assert told, said["message"]
    assert int(told[1]) >= 3


def test_a_compute_that_no_node_could_ever_hold_is_stalled_with_the_schedulers_words(troubled: Computes):
    said = troubled.until_stalled("giant", within_s=120)
    assert said["reason"] == troubled.condition("giant", "Ready")["reason"] == "Unschedulable"
    assert "0/1 nodes are available" in said["message"]


@pytest.mark.parametrize("compute_engine", ["embedded"], indirect=True)
def test_a_compute_that_wants_more_cards_than_any_node_has_is_stalled(computes: Computes):
    computes.apply("demo", computes.serving(resources={"nvidia.com/gpu": 3}))
    assert computes.until_stalled("demo")["reason"] == "Unschedulable"


def test_a_certificate_that_is_not_there_is_named_and_waited_for(computes: Computes):
    computes.apply("demo", computes.serving(tls={"secretName": "cert"}))
    said = computes.until_reason("demo", "TlsSecretMissing")
    assert 'Secret "cert" is not there' in said["message"]
    computes.kubectl("create", "secret", "generic", "cert", "--from-literal=tls.crt=a", "--from-literal=tls.key=b")
    computes.until_ready("demo")


def test_a_stateful_set_says_which_pod_it_made_and_removed(computes: Computes):
    computes.apply("demo", computes.serving())
    computes.until_ready("demo")
    computes.change("demo", {"suspend": True})

    def told() -> list[tuple[str, str]]:
        events = json.loads(computes.kubectl("get", "events", "-o", "json"))["items"]
        return [(one["reason"], one["message"]) for one in events if one["involvedObject"]["kind"] == "StatefulSet"]

    eventually(lambda: any(reason == "SuccessfulDelete" for reason, _ in told()))
    assert sorted(told()) == [
        ("SuccessfulCreate", "Create Pod demo-0 in StatefulSet demo successful"),
        ("SuccessfulDelete", "Delete Pod demo-0 in StatefulSet demo successful"),
    ]


@pytest.mark.parametrize("compute_engine", ["embedded"], indirect=True)
def test_a_claim_is_refused_where_there_are_none(computes: Computes):
    computes.apply("demo", computes.serving(sharedMemory={"claimName": "c"}))
    said = computes.until_stalled("demo")
    assert "this engine has no PersistentVolumeClaims" in said["message"]


def test_a_quota_is_named_and_one_that_is_too_small_by_itself_is_final(computes: Computes):
    computes.kubectl("create", "quota", "tight", "--hard=requests.cpu=150m")
    computes.apply("first", computes.serving())
    computes.until_ready("first")
    computes.apply("second", computes.serving())
    said = computes.until_reason("second", "QuotaExceeded")
    assert said["message"].startswith('pods "second-0" is forbidden: exceeded quota: tight')
    failed = computes.kubectl(
        "get", "events", "--field-selector=reason=FailedCreate", "-o", "jsonpath={.items[*].message}"
    )
    assert failed.startswith("Create Pod second-0 in StatefulSet second failed error: ")
    assert computes.condition("second", "Stalled")["status"] == "False"
    computes.change("second", {"resources": {"cpu": "2"}})
    assert computes.until_stalled("second")["reason"] == "QuotaExceeded"
    computes.change("second", {"resources": {"cpu": "20m"}})
    computes.until_ready("second")


@pytest.mark.parametrize("compute_engine", ["kubernetes"], indirect=True)
def test_in_a_namespace_that_wants_pods_with_the_fewest_rights_it_runs_all_the_same(computes: Computes):
    enforced = "pod-security.kubernetes.io/enforce=restricted"
    name = computes.kubectl("get", "sa", "default", "-o", "jsonpath={.metadata.namespace}")
    computes.kubectl("label", "namespace", name, enforced)
    computes.apply("demo", {"image": IMAGE})
    computes.until_ready("demo")
    assert computes.pod("demo")["spec"]["securityContext"]["runAsNonRoot"] is True


def test_a_deleted_compute_takes_everything_with_it(computes: Computes):
    computes.apply("demo", computes.serving())
    computes.until_ready("demo")
    computes.kubectl("delete", "compute", "demo")
    left = ("statefulsets,services,secrets,pods", "-o", "name", "-l", "compute.kpu.dev/name=demo")
    eventually(lambda: not computes.kubectl("get", *left), timeout_s=90)


def test_a_compute_that_is_made_anew_at_once_waits_for_what_the_earlier_one_had(computes: Computes):
    computes.apply("demo", computes.serving())
    before = computes.until_ready("demo")["metadata"]["uid"]
    computes.kubectl("delete", "compute", "demo")
    computes.apply("demo", computes.serving())
    after = computes.until_ready("demo")
    (owner,) = computes.pod("demo")["metadata"]["ownerReferences"]
    stateful_set = json.loads(computes.kubectl("get", "statefulset", "demo", "-o", "json"))["metadata"]
    assert before != after["metadata"]["uid"] == stateful_set["ownerReferences"][0]["uid"]
    assert owner["uid"] == stateful_set["uid"]


def run_deaf(computes: Computes, grace_s: int) -> None:
    """A Compute whose pod ends only when it is killed, to be deleted with this time."""
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True)"
    grace = {"compute.kpu.dev/deletion-grace-seconds": str(grace_s)}
    computes.apply(
        "demo",
        computes.running(f"{deaf}\nimport time; time.sleep(1000)"),
        annotations=grace,
        finalizers=["compute.kpu.dev/deletion"],
    )
    for event in ("create", "jsonpath={.status.phase}=Running"):
        computes.kubectl("wait", f"--for={event}", "pod/demo-0", "--timeout=50s")
    with computes.kubectl.running("logs", "-f", "demo-0") as lines:
        assert next(lines).strip() == "deaf"


@pytest.mark.parametrize("grace_s", [0, 1])
def test_a_compute_that_gives_its_pod_less_time_to_end_is_gone_after_it_and_before_the_usual_time(
    computes: Computes, grace_s: int
):
    run_deaf(computes, grace_s)
    computes.kubectl("delete", "compute", "demo", "--timeout=25s")
    assert not computes.kubectl("get", "pods", "-o", "name")


def test_a_pod_that_is_given_more_time_to_end_has_it_and_its_compute_stays_as_long(computes: Computes):
    run_deaf(computes, grace_s=45)
    grace = "jsonpath={.metadata.deletionGracePeriodSeconds}\n"
    with computes.kubectl.running("get", "pod", "demo-0", "-w", "-o", grace) as lines:
        computes.kubectl("delete", "compute", "demo", "--wait=false")
        told = next(line.strip() for line in lines if line.strip())
    assert told == "45"
    assert computes.condition("demo", "Ready")["reason"] == "Deleting"
    computes.kubectl("delete", "pod", "demo-0", "--grace-period=0", "--force")
    computes.kubectl("wait", "--for=delete", "compute/demo", "--timeout=25s")
    assert not computes.kubectl("get", "pods", "-o", "name")


def test_a_compute_that_goes_while_its_first_pod_is_made_leaves_none(computes: Computes):
    grace = {"compute.kpu.dev/deletion-grace-seconds": "1"}
    computes.apply("demo", computes.serving(), annotations=grace, finalizers=["compute.kpu.dev/deletion"])
    computes.kubectl("wait", "--for=create", "statefulset/demo", "--timeout=30s")
    computes.kubectl("delete", "compute", "demo", "--timeout=25s")
    assert not computes.kubectl("get", "pods", "-o", "name")
