"""What is made for a Compute, as documents."""

import base64

import pytest

from kpu.client import computes
from tessera.operators.compute_children import (
    TOKEN_DIGEST,
    ComputeSettings,
    is_confined,
    make_route,
    make_secret,
    make_service,
    make_stateful_set,
    set_name,
    token_digest,
)
from tests.unit.operators.compute_making import a_compute

SETTINGS = ComputeSettings()


def container_of(compute, settings=SETTINGS, digest="d"):
    (container,) = make_stateful_set(compute, settings, digest)["spec"]["template"]["spec"]["containers"]
    return container


def env_of(compute, settings=SETTINGS):
    return {one["name"]: one for one in container_of(compute, settings)["env"]}


def test_a_bare_compute_gets_everything_that_is_left_out():
    made = make_stateful_set(a_compute(), SETTINGS, "d")
    container = container_of(a_compute())
    assert made["spec"]["replicas"] == 1
    assert made["spec"]["serviceName"] == made["metadata"]["name"] == "demo"
    assert (container["name"], container["image"]) == ("server", "kpu-torch-server:latest")
    assert container["imagePullPolicy"] == "IfNotPresent"
    assert container["ports"] == [{"name": "grpc", "containerPort": 50051, "protocol": "TCP"}]
    assert container["resources"] == {
        "requests": {"cpu": "100m", "memory": "256Mi"},
        "limits": {"cpu": "1", "memory": "2Gi"},
    }
    assert container["readinessProbe"] == {
        "grpc": {"port": 50051, "service": "kpu.torch.Service"},
        "initialDelaySeconds": 2,
        "periodSeconds": 2,
        "timeoutSeconds": 5,
        "failureThreshold": 3,
    }
    assert "command" not in container
    assert "args" not in container
    assert env_of(a_compute())["KPU_HOST"] == {"name": "KPU_HOST", "value": "[::]"}


def test_all_is_owned_by_the_compute_which_waits_for_it_to_go():
    compute = a_compute()
    owner = {
        "apiVersion": "compute.kpu.dev/v1alpha1",
        "kind": "Compute",
        "name": "demo",
        "uid": "u-1",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    for made in (make_stateful_set(compute, SETTINGS, ""), make_service(compute), make_secret(compute, "t")):
        assert made["metadata"]["ownerReferences"] == [owner]


def test_a_suspended_compute_has_no_pod_and_the_same_template():
    awake, asleep = (make_stateful_set(a_compute(suspend=suspend), SETTINGS, "d") for suspend in (False, True))
    assert asleep["spec"].pop("replicas") == 0
    assert awake["spec"].pop("replicas") == 1
    assert asleep == awake


def test_variables_of_the_user_win_by_name_and_none_stands_there_twice():
    user = [
        {"name": "KPU_LOG_LEVEL", "value": "DEBUG"},
        {"name": "KPU_HOST", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "CHUNK_SIZE", "value": "2097152"},
    ]
    container = container_of(a_compute(env=user))
    names = [one["name"] for one in container["env"]]
    assert len(names) == len(set(names))
    assert [one for one in user if one not in container["env"]] == []


def test_a_log_level_by_its_short_name_is_not_hidden_by_ours():
    assert env_of(a_compute())["KPU_LOG_LEVEL"]["value"] == "INFO"
    assert "KPU_LOG_LEVEL" not in env_of(a_compute(env=[{"name": "LOG_LEVEL", "value": "DEBUG"}]))


def test_a_server_waits_for_its_calls_until_its_pod_is_killed_unless_the_user_wants_less():
    assert env_of(a_compute())["KPU_GRACE_SECONDS"]["value"] == "86400"
    own = {"name": "KPU_GRACE_SECONDS", "value": "5"}
    assert env_of(a_compute(env=[own]))["KPU_GRACE_SECONDS"] == own


def test_where_pods_share_a_network_the_server_listens_on_its_own_address():
    host = env_of(a_compute(), ComputeSettings(host_field="status.podIP"))["KPU_HOST"]
    assert host == {"name": "KPU_HOST", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}


@pytest.mark.parametrize(("told", "port"), [("6000", 6000), ("0", 50051), ("many", 50051), ("70000", 50051)])
def test_a_port_of_the_users_choice_is_the_one_that_is_probed(told: str, port: int):
    container = container_of(a_compute(env=[{"name": "KPU_PORT", "value": told}]))
    assert container["ports"][0]["containerPort"] == container["readinessProbe"]["grpc"]["port"] == port


def test_labels_of_the_user_go_everywhere_and_never_break_the_selector():
    labels = {"team": "ml", "app.kubernetes.io/part-of": "ours", "app.kubernetes.io/instance": "another"}
    compute = a_compute(labels=labels | {"app.kubernetes.io/name": "x", "compute.kpu.dev/name": "y"})
    made = make_stateful_set(compute, SETTINGS, "")
    pod = made["spec"]["template"]["metadata"]["labels"]
    selected = made["spec"]["selector"]["matchLabels"]
    assert selected.items() <= pod.items()
    assert selected == make_service(compute)["spec"]["selector"]
    assert selected["app.kubernetes.io/instance"] == pod["compute.kpu.dev/name"] == "demo"
    assert pod["team"] == "ml"
    assert pod["app.kubernetes.io/part-of"] == "ours"


def test_annotations_go_to_the_pod_and_another_token_starts_it_anew():
    compute = a_compute(spec={"annotations": {"note": "mine"}})
    one, other = (make_stateful_set(compute, SETTINGS, digest)["spec"]["template"] for digest in ("a", "b"))
    assert one["metadata"]["annotations"] == {"note": "mine", TOKEN_DIGEST: "a"}
    assert one != other


@pytest.mark.parametrize(
    "compute", [a_compute(token="disabled"), a_compute(annotations={"compute.kpu.dev/token": "disabled"})]
)
def test_a_token_can_be_done_without(compute):
    assert not compute.has_token
    assert "KPU_TOKEN" not in env_of(compute)


def test_a_token_reaches_the_server_by_its_secret_and_is_told_to_nobody_else():
    secret = make_secret(a_compute(), "word")
    assert base64.b64decode(secret["data"]["token"]) == b"word"
    key = {"name": "demo-token", "key": "token"}
    assert env_of(a_compute())["KPU_TOKEN"]["valueFrom"] == {"secretKeyRef": key}
    assert token_digest(secret)
    assert "word" not in token_digest(secret)
    assert token_digest({"data": {}}) == token_digest({}) == ""


def test_resources_are_requests_and_limits_and_what_is_left_out_is_as_usual():
    resources = container_of(a_compute(resources={"nvidia.com/gpu": 1, "nvidia.com/gpumem": 4000, "memory": "8Gi"}))[
        "resources"
    ]
    cards = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 4000, "memory": "8Gi"}
    assert resources == {"requests": {"cpu": "100m", **cards}, "limits": {"cpu": "1", **cards}}


def test_with_tls_the_server_gets_its_certificate_and_is_asked_whether_it_listens():
    compute = a_compute(tls={"secretName": "cert"})
    container = container_of(compute)
    assert container["volumeMounts"] == [{"name": "tls", "mountPath": "/etc/kpu/tls", "readOnly": True}]
    assert env_of(compute)["KPU_TLS_CERT"]["value"] == "/etc/kpu/tls/tls.crt"
    assert container["readinessProbe"]["tcpSocket"] == {"port": 50051}
    assert "appProtocol" not in make_service(compute)["spec"]["ports"][0]


@pytest.mark.parametrize(
    ("shared", "volume", "directory"),
    [
        ({"hostPath": "/run/kpu/"}, {"hostPath": {"path": "/run/kpu/", "type": "DirectoryOrCreate"}}, "/run/kpu"),
        ({"claimName": "c"}, {"persistentVolumeClaim": {"claimName": "c"}}, "/run/kpu/shared"),
    ],
)
def test_a_shared_directory_has_the_servers_socket(shared, volume, directory):
    compute = a_compute(sharedMemory=shared)
    pod = make_stateful_set(compute, SETTINGS, "")["spec"]["template"]["spec"]
    assert pod["volumes"] == [{"name": "shared", **volume}]
    assert pod["containers"][0]["volumeMounts"] == [{"name": "shared", "mountPath": directory}]
    assert env_of(compute)["KPU_SHARED_SOCKET"]["value"] == f"{directory}/u-1.sock"


def test_a_long_name_is_shortened_where_a_label_of_the_pod_would_be_too_long():
    long = "a" * 63
    shortened = set_name(a_compute(long))
    assert set_name(a_compute("b" * 52)) == "b" * 52
    assert len(shortened) <= 52
    assert shortened != set_name(a_compute("a" * 62))
    assert make_service(a_compute(long))["metadata"]["name"] == long


@pytest.mark.parametrize("name", ["demo", "b" * 52, "b" * 53, "a" * 63, "a" * 42 + "-" * 5 + "b" * 10])
def test_a_client_knows_the_set_of_a_compute_by_its_name(name):
    assert computes.set_name(name) == set_name(a_compute(name))


def test_a_route_leads_calls_for_this_compute_to_its_service():
    compute = a_compute(route={"parentRefs": [{"name": "gate"}], "hostnames": ["kpu.example"]})
    assert compute.spec.route
    spec = make_route(compute, compute.spec.route)["spec"]
    (rule,) = spec["rules"]
    assert spec["parentRefs"] == [{"name": "gate"}]
    assert spec["hostnames"] == ["kpu.example"]
    assert rule["matches"] == [{"headers": [{"type": "Exact", "name": "compute-id", "value": "ml/demo"}]}]
    assert rule["backendRefs"] == [{"name": "demo", "port": 50051}]


def test_services_beside_it_become_no_variables_of_the_server():
    pod = make_stateful_set(a_compute(), SETTINGS, "")["spec"]["template"]["spec"]
    assert pod["enableServiceLinks"] is False
    assert pod["automountServiceAccountToken"] is False


def test_a_server_may_do_what_its_image_does_unless_only_those_with_the_fewest_rights_are_taken():
    compute = a_compute()
    usual, confined = (make_stateful_set(compute, SETTINGS, "", confined=confined) for confined in (False, True))
    assert (is_confined(usual), is_confined(confined)) == (False, True)
    pod = confined["spec"]["template"]["spec"]
    assert pod.pop("securityContext") == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert pod["containers"][0].pop("securityContext") == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    assert confined == usual
