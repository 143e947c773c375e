"""Where a webhook is that names a Service."""

import pytest

from tessera.embedded.doors.backends import Backend
from tessera.embedded.doors.webhook_services import WebhookServices


class Objects:
    """What is stored, as those who decide read it."""

    def __init__(self, **by_resource):
        self._by_resource = by_resource

    def get(self, resource, namespace, name):
        found = (one for one in self._by_resource[resource] if one["metadata"]["name"] == name)
        return next(found, None) if namespace == "blue" else None

    def list(self, resource, namespace=""):
        return self._by_resource[resource.partition(".")[0]] if namespace == "blue" else []


def slice_of(service, address, ready=True):
    return {
        "metadata": {"name": f"{service}-1", "namespace": "blue", "labels": {"kubernetes.io/service-name": service}},
        "ports": [{"name": "https", "port": 9443}],
        "endpoints": [{"addresses": [address], "conditions": {"ready": ready}}],
    }


@pytest.fixture
def find():
    services = [
        {"metadata": {"name": name, "namespace": "blue"}, "spec": {"ports": [{"name": "https", "port": 443}]}}
        for name in ("hook", "other", "starting")
    ]
    slices = [
        slice_of("other", "127.64.0.1"),
        slice_of("hook", "127.64.0.2"),
        slice_of("starting", "127.64.0.3", False),
    ]
    return WebhookServices(Objects(services=services, endpointslices=slices))


def test_it_is_where_a_ready_pod_of_the_service_listens(find):
    assert find("blue", "hook", 443) == Backend("127.64.0.2", 9443)


@pytest.mark.parametrize(
    ("namespace", "name", "port"),
    [("blue", "hook", 80), ("blue", "absent", 443), ("red", "hook", 443), ("blue", "starting", 443)],
)
def test_where_nobody_is_ready_it_is_nowhere(find, namespace, name, port):
    assert find(namespace, name, port) is None
