"""What a request is about, by its path."""

import pytest

from tessera.embedded.serving.paths import Target, read_target, verb_of


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/api/v1/pods", Target("", "v1", "pods")),
        ("/api/v1/namespaces/web/pods", Target("", "v1", "pods", "web")),
        ("/api/v1/namespaces/web/pods/a", Target("", "v1", "pods", "web", "a")),
        ("/api/v1/namespaces/web/pods/a/status", Target("", "v1", "pods", "web", "a", "status")),
        ("/api/v1/namespaces", Target("", "v1", "namespaces")),
        ("/api/v1/namespaces/", Target("", "v1", "namespaces")),
        ("/api/v1/namespaces/web", Target("", "v1", "namespaces", "", "web")),
        ("/api/v1/namespaces/web/finalize", Target("", "v1", "namespaces", "", "web", "finalize")),
        ("/api/v1/nodes/n/status", Target("", "v1", "nodes", "", "n", "status")),
        ("/apis/apps/v1/namespaces/web/deployments/d/scale", Target("apps", "v1", "deployments", "web", "d", "scale")),
        ("/apis/a.example/v1/things/t", Target("a.example", "v1", "things", "", "t")),
        (
            "/api/v1/namespaces/web/services/http:s:80/proxy/a/b/",
            Target("", "v1", "services", "web", "http:s:80", "proxy", "/a/b/"),
        ),
        ("/api/v1/namespaces/web/services/s/proxy/", Target("", "v1", "services", "web", "s", "proxy", "/")),
        (
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
            Target("rbac.authorization.k8s.io", "v1", "clusterroles", "", "system:node"),
        ),
    ],
)
def test_a_path_names_a_resource(path, target):
    assert read_target(path) == target


@pytest.mark.parametrize("path", ["/", "/api", "/api/v1", "/api/v1/", "/apis", "/apis/apps/v1", "/healthz", "/version"])
def test_other_paths_name_none(path):
    assert read_target(path) is None


@pytest.mark.parametrize(
    ("method", "name", "watches", "verb"),
    [
        ("GET", "", False, "list"),
        ("GET", "", True, "watch"),
        ("GET", "a", False, "get"),
        ("POST", "", False, "create"),
        ("PUT", "a", False, "update"),
        ("PATCH", "a", False, "patch"),
        ("DELETE", "a", False, "delete"),
        ("DELETE", "", False, "deletecollection"),
        ("PUT", "", False, None),
        ("TRACE", "a", False, None),
    ],
)
def test_a_method_is_a_verb(method, name, watches, verb):
    assert verb_of(method, Target("", "v1", "pods", "web", name), watches=watches) == verb
