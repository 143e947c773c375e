"""What helm makes of the chart, and what it refuses, without a cluster."""

from typing import Any

import pytest
import yaml

from tessera.apps import agent, certificates, extender, operator
from tessera.apps.extender_options import read_options
from testbed.fixtures import require_testbed
from tests.chart.charts import SEEDS_CHART, Rendered, helm

SCHEDULER = ("Deployment", "hami-scheduler")
AGENT = ("DaemonSet", "hami-device-plugin")
OPERATOR = ("Deployment", "tessera-operator")
CLUSTER_WIDE = {
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
}


@pytest.fixture(scope="module", autouse=True)
def programs():
    require_testbed()


@pytest.fixture(scope="module")
def plain() -> Rendered:
    return Rendered()


def test_helm_has_nothing_to_complain_about():
    done = helm("lint", "--strict", SEEDS_CHART)
    assert done.returncode == 0, done.stdout
    assert "[WARNING]" not in done.stdout


def test_everything_is_in_kube_system_whatever_the_release_is_called(plain: Rendered):
    elsewhere = [
        (one["kind"], one["metadata"]["name"])
        for one in plain.objects
        if one["kind"] not in CLUSTER_WIDE
        and one["metadata"].get("namespace") != "kube-system"
        and not one["metadata"]["name"].endswith(":card-leases")
    ]
    assert elsewhere == []


def test_roles_for_the_leases_of_cards_are_where_the_leases_are():
    rendered = Rendered("claims.leaseNamespace=cards")
    for account, verbs in (("hami-scheduler", {"create", "delete", "update"}), ("tessera-operator", set())):
        role = rendered.get("Role", f"{account}:card-leases")
        given = rendered.get("RoleBinding", f"{account}:card-leases")
        assert (role["metadata"]["namespace"], given["metadata"]["namespace"]) == ("cards", "cards")
        assert given["subjects"] == [{"kind": "ServiceAccount", "name": account, "namespace": "kube-system"}]
        (rule,) = role["rules"]
        assert set(rule["verbs"]) - {"get", "list", "watch", "patch"} == verbs
    for container in (rendered.container(*OPERATOR, "operator"), rendered.container(*SCHEDULER, "scheduler")):
        assert "--lease-namespace=cards" in container["args"]


def test_our_container_comes_first_and_its_logs_are_shown(plain: Rendered):
    template = plain.get(*SCHEDULER)["spec"]["template"]
    assert [container["name"] for container in template["spec"]["containers"]] == ["scheduler", "kube-scheduler"]
    assert template["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"] == "scheduler"


def images(rendered: Rendered) -> dict[str, str]:
    pods = [rendered.pod_of(*kind) for kind in (SCHEDULER, AGENT, OPERATOR)]
    return {one["name"]: one["image"] for pod in pods for one in [*pod.get("initContainers", []), *pod["containers"]]}


def test_images_are_ours_and_the_clusters_own_kube_scheduler(plain: Rendered):
    ours = "tessera:0.1.0"
    assert images(plain) == {
        "certificates": ours,
        "scheduler": ours,
        "kube-scheduler": "registry.k8s.io/kube-scheduler:v1.36.3",
        "device-plugin": ours,
        "operator": ours,
    }


def test_one_tag_is_for_all_of_ours_unless_the_device_plugin_has_its_own():
    tagged = images(Rendered("scheduler.image.tag=v0.2.0"))
    assert {tagged[name] for name in ("certificates", "scheduler", "device-plugin", "operator")} == {"tessera:v0.2.0"}
    apart = images(Rendered("devicePlugin.image.tag=v0.3.0", "devicePlugin.image.repository=mirror/tessera"))
    assert (apart["scheduler"], apart["device-plugin"]) == ("tessera:0.1.0", "mirror/tessera:v0.3.0")


@pytest.mark.parametrize("version", ["v1.33.5-gke.1162000", "v1.33.5+k3s1", "v1.33.5-eks-113cf36"])
def test_a_providers_suffix_is_no_part_of_kube_schedulers_version(version: str):
    assert images(Rendered(version=version))["kube-scheduler"] == "registry.k8s.io/kube-scheduler:v1.33.5"


def test_a_cluster_that_is_too_old_is_refused():
    done = helm("template", "gpu-scheduler", SEEDS_CHART, "--kube-version=v1.29.0")
    assert "chart requires kubeVersion: >=1.30.0-0 which is incompatible with Kubernetes v1.29.0" in done.stderr


UNPRIVILEGED = {
    "runAsNonRoot": True,
    "runAsUser": 65532,
    "runAsGroup": 65532,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def test_the_operators_pod_has_no_rights_on_its_node(plain: Rendered):
    pod = plain.pod_of(*OPERATOR)
    assert pod["securityContext"] == UNPRIVILEGED
    assert "volumes" not in pod
    assert is_confined(plain.container(*OPERATOR, "operator"))


def test_the_schedulers_pod_has_no_rights_on_its_node(plain: Rendered):
    pod = plain.pod_of(*SCHEDULER)
    assert pod["securityContext"] == UNPRIVILEGED
    assert {frozenset(volume) - {"name"} for volume in pod["volumes"]} == {
        frozenset({"emptyDir"}),
        frozenset({"configMap"}),
    }
    for container in [*pod["initContainers"], *pod["containers"]]:
        assert is_confined(container), container["name"]


def is_confined(container: dict) -> bool:
    return container["securityContext"].items() >= {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }.items()  # fmt: skip


def test_the_agent_is_root_with_no_capability_and_shares_directories_and_processes_with_its_node(plain: Rendered):
    pod, container = plain.pod_of(*AGENT), plain.container(*AGENT, "device-plugin")
    assert is_confined(container)
    assert "privileged" not in container["securityContext"]
    assert not {"hostNetwork", "hostIPC"} & pod.keys()
    assert pod["hostPID"] is True
    read_only = {mount["mountPath"] for mount in container["volumeMounts"] if mount.get("readOnly")}
    assert read_only == {"/var/lib/kubelet/pod-resources", "/host/cgroup"}
    assert {volume["hostPath"]["path"] for volume in pod["volumes"]} == {
        "/var/lib/kubelet/device-plugins",
        "/var/lib/kubelet/pod-resources",
        "/var/run/cdi",
        "/var/lib/tessera",
        "/run/tessera",
        "/usr/local/tessera",
        "/usr/local/vgpu",
        "/sys/fs/cgroup",
    }


def test_directories_are_mounted_where_the_node_has_them():
    rendered = Rendered("devicePlugin.paths.kubelet=/data/kubelet", "devicePlugin.paths.hook=/opt")
    container = rendered.container(*AGENT, "device-plugin")
    inside = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] != "cgroup"}
    volumes = {volume["name"]: volume["hostPath"]["path"] for volume in rendered.pod_of(*AGENT)["volumes"]}
    assert inside == {name: path for name, path in volumes.items() if name != "cgroup"}
    assert {"--kubelet-dir=/data/kubelet", "--hook-path=/opt"} <= set(container["args"])
    assert {"/data/kubelet/device-plugins", "/opt/vgpu", "/opt/tessera"} <= set(inside.values())


def test_the_nodes_processes_can_be_kept_from_the_agent():
    assert "hostPID" not in Rendered("devicePlugin.hostPID=false").pod_of(*AGENT)


def test_nvml_can_come_from_a_runtime_class_or_from_the_node():
    by_runtime = Rendered("devicePlugin.runtimeClassName=nvidia")
    assert by_runtime.pod_of(*AGENT)["runtimeClassName"] == "nvidia"
    library = "/usr/lib64/libnvidia-ml.so.1"
    by_file = Rendered(f"devicePlugin.nvml={library}", "devicePlugin.privileged=true")
    container = by_file.container(*AGENT, "device-plugin")
    assert container["securityContext"]["privileged"] is True
    assert {"name": "LD_LIBRARY_PATH", "value": "/host/nvml"} in container["env"]
    assert library in [volume["hostPath"]["path"] for volume in by_file.pod_of(*AGENT)["volumes"]]


def test_flags_follow_from_values():
    rendered = Rendered(
        "devicePlugin.simulate=8xA100-SXM4-80GB",
        "devicePlugin.inventoryPort=9396",
        "devicePlugin.registerFormat=json",
        "devicePlugin.cdi=off",
        "devicePlugin.extraArgs={--one,--two}",
        "scheduler.nodePolicy=spread",
        "scheduler.cardPolicy=binpack",
    )
    agent = rendered.container(*AGENT, "device-plugin")["args"]
    assert agent[:4] == ["run", "agent", "--node=$(NODE_NAME)", "--simulate=8xA100-SXM4-80GB"]
    assert {"--inventory=0.0.0.0:9396", "--register-format=json", "--cdi=off", "--one", "--two"} <= set(agent)
    scheduler = rendered.container(*SCHEDULER, "scheduler")["args"]
    assert {"--node-policy=spread", "--card-policy=binpack"} <= set(scheduler)


@pytest.mark.parametrize("values", [(), ("certManager.enabled=true",)], ids=str)
def test_our_programs_know_the_flags_that_they_are_given(values: tuple[str, ...]):
    rendered = Rendered("devicePlugin.simulate=8xA100-SXM4-80GB", "devicePlugin.inventoryPort=9396", *values)
    (init,) = rendered.pod_of(*SCHEDULER)["initContainers"]
    assert init["args"][:2] == ["certificates", "pod-local"]
    certificates.pod_local.make_context("pod-local", init["args"][2:])
    run_agent = rendered.container(*AGENT, "device-plugin")["args"]
    assert run_agent[:2] == ["run", "agent"]
    agent.command.make_context("agent", run_agent[2:])
    run_operator = rendered.container(*OPERATOR, "operator")["args"]
    assert run_operator[:2] == ["run", "operator"]
    operator.command.make_context("operator", run_operator[2:])
    run_extender = rendered.container(*SCHEDULER, "scheduler")["args"]
    assert run_extender[:2] == ["run", "extender"]
    flags: Any = extender.command.make_context("extender", run_extender[2:]).params
    assert read_options(flags).webhook


def test_kube_scheduler_asks_the_extender_beside_it_and_verifies_it(plain: Rendered):
    config = yaml.safe_load(plain.get("ConfigMap", "hami-scheduler")["data"]["kube-scheduler.yaml"])
    for asked in config["extenders"]:
        assert asked["urlPrefix"] == "https://127.0.0.1:8443"
        assert asked["tlsConfig"] == {"insecure": False, "caFile": "/run/tessera/tls/ca.crt"}
    mounts = {mount["mountPath"] for mount in plain.container(*SCHEDULER, "kube-scheduler")["volumeMounts"]}
    assert mounts == {"/etc/tessera", "/run/tessera/tls"}


def test_other_schedulers_may_write_allocations_when_they_are_named(plain: Rendered):
    def writers(rendered: Rendered) -> str:
        policy = rendered.get("ValidatingAdmissionPolicy", "hami-allocations")
        return policy["spec"]["matchConditions"][0]["expression"]

    ours, volcano = "system:serviceaccount:kube-system:hami-scheduler", "system:serviceaccount:volcano-system:volcano"
    assert writers(plain) == f"!(request.userInfo.username in ['{ours}'])"
    assert writers(Rendered(f"otherSchedulers={{{volcano}}}")) == (
        f"!(request.userInfo.username in ['{ours}', '{volcano}'])"
    )


def test_namespaces_can_be_left_alone_and_the_timeout_chosen():
    hooks = Rendered("webhook.leftAlone={a,kube-system}", "webhook.timeoutSeconds=9").get(
        "MutatingWebhookConfiguration", "hami-webhook"
    )["webhooks"]
    assert hooks
    for hook in hooks:
        *_, named = hook["namespaceSelector"]["matchExpressions"]
        assert (named["values"], hook["timeoutSeconds"]) == (["kube-system", "a"], 9)


def test_the_service_has_every_port_that_the_webhooks_name(plain: Rendered):
    hooks = plain.get("MutatingWebhookConfiguration", "hami-webhook")["webhooks"]
    ports = {port["port"]: port["targetPort"] for port in plain.get("Service", "hami-scheduler")["spec"]["ports"]}
    assert {ports.get(hook["clientConfig"]["service"]["port"]) for hook in hooks} == {"webhook"}


def test_an_upgrade_has_no_authority_and_no_key_to_overwrite_ours_with(plain: Rendered):
    webhook = plain.get("MutatingWebhookConfiguration", "hami-webhook")
    assert all("caBundle" not in hook["clientConfig"] for hook in webhook["webhooks"])
    assert not {"data", "stringData"} & plain.get("Secret", "hami-scheduler-tls").keys()


def test_cert_manager_takes_the_place_of_our_own_certificates():
    rendered = Rendered("certManager.enabled=true")
    webhook = rendered.get("MutatingWebhookConfiguration", "hami-webhook")
    assert webhook["metadata"]["annotations"] == {"cert-manager.io/inject-ca-from": "kube-system/hami-scheduler-tls"}
    certificate = rendered.get("Certificate", "hami-scheduler-tls")["spec"]
    assert certificate["dnsNames"] == ["hami-scheduler.kube-system.svc"]
    assert certificate["issuerRef"] == {"kind": "Issuer", "name": "hami-scheduler-tls"}
    assert rendered.get("Issuer", "hami-scheduler-tls")["spec"] == {"selfSigned": {}}
    scheduler = rendered.container(*SCHEDULER, "scheduler")
    assert "--webhook-tls-dir=/run/tessera/webhook" in scheduler["args"]
    assert not [flag for flag in scheduler["args"] if flag.startswith(("--webhook-secret", "--webhook-configuration"))]
    assert rendered.find("Secret", "hami-scheduler-tls") is None
    assert not any("secrets" in rule["resources"] for rule in rendered.get("Role", "hami-scheduler")["rules"])


def test_an_issuer_that_is_named_signs():
    rendered = Rendered(
        "certManager.enabled=true", "certManager.issuerRef.kind=ClusterIssuer", "certManager.issuerRef.name=x"
    )
    assert rendered.find("Issuer", "hami-scheduler-tls") is None
    assert rendered.get("Certificate", "hami-scheduler-tls")["spec"]["issuerRef"] == {
        "kind": "ClusterIssuer",
        "name": "x",
    }


def test_the_webhook_is_open_to_all_and_metrics_to_whom_we_say():
    rendered = Rendered("networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.name=monitoring")
    peers = [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}]
    webhook, metrics = rendered.get("NetworkPolicy", "hami-scheduler")["spec"]["ingress"]
    assert webhook == {"ports": [{"port": "webhook"}]}
    assert metrics == {"ports": [{"port": "metrics"}, {"port": "scheduling"}], "from": peers}
    for name in ("hami-device-plugin", "tessera-operator"):
        ingress = rendered.get("NetworkPolicy", name)["spec"]["ingress"]
        assert ingress == [{"ports": [{"port": "metrics"}], "from": peers}]


def test_parts_can_be_left_out():
    rendered = Rendered("networkPolicy.enabled=false", "devicePlugin.enabled=false")
    assert not {"NetworkPolicy", "DaemonSet"} & {one["kind"] for one in rendered.objects}
    accounts = {one["metadata"]["name"] for one in rendered.objects if one["kind"] == "ServiceAccount"}
    assert accounts == {"hami-scheduler", "tessera-operator"}


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("scheduler.replica=3", "at '/scheduler': additional properties 'replica' not allowed"),
        ("sheduler.replicas=3", "at '': additional properties 'sheduler' not allowed"),
        ("scheduler.replicas=two", "at '/scheduler/replicas': got string, want integer"),
        ("scheduler.image.pullPolicy=Sometimes", "at '/scheduler/image/pullPolicy': value must be one of"),
        ("devicePlugin.simulate=A100", "at '/devicePlugin/simulate': 'A100' does not match pattern"),
        ("devicePlugin.paths.cdi=cdi", "at '/devicePlugin/paths/cdi': 'cdi' does not match pattern"),
        ("operator.replicas=0", "at '/operator/replicas': minimum: got 0, want 1"),
        ("claims.leaseNamespace=A", "at '/claims/leaseNamespace': 'A' does not match pattern"),
        ("webhook.timeoutSeconds=60", "at '/webhook/timeoutSeconds': maximum: got 60, want 30"),
        ("certManager.issuerRef.nane=x", "at '/certManager/issuerRef': additional properties 'nane' not allowed"),
    ],
)
def test_a_typing_mistake_is_refused_with_its_place(value: str, complaint: str):
    done = helm("template", "gpu-scheduler", SEEDS_CHART, "--kube-version=v1.36.3", f"--set={value}")
    assert done.returncode != 0
    assert complaint in done.stderr
