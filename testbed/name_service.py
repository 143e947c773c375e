"""CoreDNS in the cluster, as kubeadm puts it there: a Deployment in kube-system behind the Service `kube-dns`.

It knows the names of the cluster and no others, because the machine is connected to nothing else.
"""

import json
from typing import Any

COREFILE = """\
.:1053 {
    errors
    health :8080
    ready :8181
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 5
    }
    cache 5
    reload
}
"""
LABELS = {"k8s-app": "kube-dns"}
META = {"namespace": "kube-system", "labels": LABELS}


def manifests(*, image: str, address: str) -> str:
    """Everything to apply; `address` is the Service's, which kubelets hand to pods."""
    items = [*_permissions(), _configuration(), _deployment(image), _service(address)]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def _permissions() -> list[dict[str, Any]]:
    rbac = "rbac.authorization.k8s.io"
    rules = [
        {"apiGroups": [""], "resources": ["endpoints", "services", "pods", "namespaces"], "verbs": ["list", "watch"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
    ]
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "coredns", "namespace": "kube-system"}},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "system:coredns"},
            "rules": rules,
        },
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "system:coredns"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "system:coredns"},
            "subjects": [{"kind": "ServiceAccount", "name": "coredns", "namespace": "kube-system"}],
        },
    ]


def _configuration() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "coredns", "namespace": "kube-system"},
        "data": {"Corefile": COREFILE},
    }


def _deployment(image: str) -> dict[str, Any]:
    container = {
        "name": "coredns",
        "image": image,
        "imagePullPolicy": "Never",
        "args": ["-conf", "/etc/coredns/Corefile"],
        "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns", "readOnly": True}],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 1},
        "securityContext": {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True},
    }
    pod = {
        "serviceAccountName": "coredns",
        "priorityClassName": "system-cluster-critical",
        "dnsPolicy": "Default",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "affinity": _away_from_simulated_nodes(),
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": "coredns"}}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "coredns", **META},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": LABELS},
            "template": {"metadata": {"labels": LABELS}, "spec": pod},
        },
    }


def _away_from_simulated_nodes() -> dict[str, Any]:
    real = {"matchExpressions": [{"key": "type", "operator": "NotIn", "values": ["kwok"]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [real]}}}


def _service(address: str) -> dict[str, Any]:
    ports = [
        {"name": f"dns-{kind.lower()}", "port": 53, "targetPort": 1053, "protocol": kind} for kind in ("UDP", "TCP")
    ]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kube-dns", **META},
        "spec": {"clusterIP": address, "selector": LABELS, "ports": ports},
    }
