"""Pods as they are cached: the fields that scheduling reads, and equal parts kept once."""

import msgspec

from tessera.kube.kinds import PODS
from tessera.kube.objects import ObjectKey, identify
from tessera.kube.pods import CACHED_PODS, Pod, Pool
from tessera.model.pods import read_pod_ref


def a_body(number: int, gpus: str = "1") -> bytes:
    limits = {"nvidia.com/gpu": gpus}
    return msgspec.json.encode(
        {
            "metadata": {
                "name": f"web-{number}",
                "namespace": "n",
                "resourceVersion": "7",
                "managedFields": [{"manager": "kubectl"}],
                "labels": {"app": "web"},
                "ownerReferences": [{"apiVersion": "v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}],
            },
            "spec": {
                "nodeName": "gpu-1",
                "schedulerName": "tessera",
                "priority": 5,
                "containers": [{"name": "main", "image": "x", "resources": {"limits": limits}}],
                "tolerations": [{"key": "gpu", "operator": "Exists"}],
            },
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        }
    )


def decoded(number: int, gpus: str = "1") -> Pod:
    return CACHED_PODS.decode(a_body(number, gpus), "pods")


def test_a_pod_keeps_what_scheduling_reads() -> None:
    pod = decoded(0)

    assert identify(pod).key == ObjectKey("n", "web-0")
    assert pod.metadata.labels == {"app": "web"}
    assert [owner.kind for owner in pod.metadata.owner_references or ()] == ["Job"]
    assert (pod.spec.node_name, pod.spec.scheduler_name, pod.spec.priority) == ("gpu-1", "tessera", 5)
    assert [container.name for container in pod.spec.containers] == ["main"]
    assert pod.status.phase == "Running"


def test_a_cached_pod_is_the_document_that_the_model_reads() -> None:
    document = PODS.decode(a_body(3), "pods")

    assert read_pod_ref(msgspec.to_builtins(decoded(3))) == read_pod_ref(document)


def test_pods_that_ask_for_the_same_share_what_is_equal() -> None:
    one, two = decoded(1), decoded(2)

    assert one.spec.containers is two.spec.containers
    assert one.spec.tolerations is two.spec.tolerations
    assert one.status is two.status


def test_pods_that_ask_for_different_things_share_nothing_of_it() -> None:
    one, two = decoded(1, gpus="1"), decoded(2, gpus="2")

    amounts = [pod.spec.containers[0].resources for pod in (one, two)]
    assert [resources.limits for resources in amounts if resources] == [
        {"nvidia.com/gpu": "1"},
        {"nvidia.com/gpu": "2"},
    ]


def test_a_pool_is_bounded_and_keeps_apart_what_only_looks_alike() -> None:
    pool = Pool(most=2)
    first = ["a"]

    assert pool.share("x", first) is pool.share("x", ["a"])
    assert pool.share("y", ["a"]) is not first
    assert pool.share("x", ["a"]) is not first


def test_the_copy_of_itself_that_kubectl_leaves_on_a_pod_is_not_kept() -> None:
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "hami.io/vgpu-node": "gpu-1"}
    body = {"metadata": {"name": "web", "annotations": annotations}, "spec": {"containers": []}}
    pod = CACHED_PODS.decode(msgspec.json.encode(body), "pods")
    assert pod.metadata.annotations == {"hami.io/vgpu-node": "gpu-1"}
