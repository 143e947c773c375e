"""Which cluster, and which namespace: said once, or found."""

import threading
from pathlib import Path

import pytest
import yaml

from kpu.client import Compute, NoCluster, cluster, init
from kpu.client.cluster import current_cluster

pytestmark = pytest.mark.usefixtures("fresh")


def write_kubeconfig(path: Path, *, server: str, context: str, namespace: str | None = None) -> Path:
    """A file of one context, which is the current one."""
    inside = {"cluster": context, "user": context} | ({"namespace": namespace} if namespace else {})
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": context,
        "contexts": [{"name": context, "context": inside}],
        "clusters": [{"name": context, "cluster": {"server": server}}],
        "users": [{"name": context, "user": {"token": f"token-of-{context}"}}],
    }
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither a kubeconfig nor a pod, unless the test makes one."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    monkeypatch.setattr(cluster, "NAMESPACE_FILE", tmp_path / "absent")
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


def test_the_namespace_of_the_current_context_counts_also_for_the_first_compute(api, monkeypatch, tmp_path):
    monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path / "k", server=api.url, context="c", namespace="ml")))
    compute = Compute("worker")
    assert compute.namespace == "ml"
    assert api.requests[0].path == "/apis/compute.kpu.dev/v1alpha1/namespaces/ml/computes/worker"


def test_an_explicit_namespace_comes_before_the_context(api, monkeypatch, tmp_path):
    monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path / "k", server=api.url, context="c", namespace="ml")))
    init(namespace="mine")
    assert current_cluster().namespace == "mine"


def test_the_service_account_tells_the_namespace_where_no_context_does(api, monkeypatch, tmp_path):
    monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path / "k", server=api.url, context="c")))
    (tmp_path / "namespace").write_text("of-account\n")
    monkeypatch.setattr(cluster, "NAMESPACE_FILE", tmp_path / "namespace")
    assert current_cluster().namespace == "of-account"


def test_without_anything_it_is_default(api, monkeypatch, tmp_path):
    monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path / "k", server=api.url, context="c")))
    assert current_cluster().namespace == "default"


def test_several_kubeconfigs_are_merged_as_kubectl_does(api, monkeypatch, tmp_path):
    first = write_kubeconfig(tmp_path / "first", server=api.url, context="first", namespace="of-first")
    second = write_kubeconfig(tmp_path / "second", server="http://192.0.2.1", context="second", namespace="of-second")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'absent'}:{first}:{second}")
    assert (current_cluster().api.url, current_cluster().namespace) == (api.url, "of-first")


def test_a_given_configuration_is_used_and_no_kubeconfig_overwrites_it(api, configuration_for, monkeypatch, tmp_path):
    other = write_kubeconfig(tmp_path / "k", server="http://192.0.2.1", context="c", namespace="ml")
    monkeypatch.setenv("KUBECONFIG", str(other))
    configuration = configuration_for(api.url)
    configuration.api_key_prefix["authorization"] = "Bearer"
    configuration.api_key["authorization"] = "my-token"
    init(client_config=configuration)
    Compute("worker")
    assert api.requests[0].headers["authorization"] == "Bearer my-token"


def test_the_token_of_the_kubeconfig_goes_with_every_request(api, monkeypatch, tmp_path):
    monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path / "k", server=api.url, context="c")))
    Compute("worker").is_ready()
    assert [request.headers["authorization"] for request in api.requests] == ["Bearer token-of-c"] * 2


def test_init_can_be_called_once_only(api, configuration_for):
    init(client_config=configuration_for(api.url), namespace="first")
    with pytest.raises(RuntimeError, match=r"already initialised: call init\(\) once, before the first Compute"):
        init(namespace="second")
    assert current_cluster().namespace == "first"


def test_init_cannot_be_called_after_the_first_compute(api, monkeypatch, tmp_path):
    monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path / "k", server=api.url, context="c")))
    Compute("worker")
    with pytest.raises(RuntimeError, match="already initialised"):
        init(namespace="late")


def test_of_threads_that_race_one_initialises(api, configuration_for):
    outcomes: list[str] = []
    begin = threading.Barrier(8)

    def race(number: int) -> None:
        begin.wait()
        try:
            init(client_config=configuration_for(api.url), namespace=f"n{number}")
            outcomes.append(f"n{number}")
        except RuntimeError:
            outcomes.append("refused")

    threads = [threading.Thread(target=race, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes)[-7:] == ["refused"] * 7
    assert current_cluster().namespace in outcomes


def test_without_any_cluster_one_sentence_says_what_to_do_and_init_can_still_be_called(api, configuration_for):
    with pytest.raises(NoCluster) as refused:
        Compute("worker")
    assert str(refused.value).startswith("No cluster to talk to: the kubeconfig cannot be used (")
    assert str(refused.value).endswith("set KUBECONFIG, or call kpu.client.init(client_config=...)")
    assert "\n" not in str(refused.value)
    init(client_config=configuration_for(api.url))


@pytest.mark.parametrize("content", [b"{: this is : no yaml", b"a: [\n", b"- 1", b"5", b"\xff\xfe", b""])
def test_a_kubeconfig_that_is_none_is_told_in_one_sentence(monkeypatch, tmp_path, content):
    (tmp_path / "k").write_bytes(content)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "k"))
    with pytest.raises(NoCluster, match="the kubeconfig cannot be used") as refused:
        init()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("given", ["ml-team", {}])
def test_a_configuration_that_is_none_is_refused_and_init_can_still_be_called(api, configuration_for, given):
    with pytest.raises(ValueError, match=r"expected a kubernetes.client.Configuration; a namespace is given as init"):
        init(given)
    init(client_config=configuration_for(api.url))


@pytest.mark.parametrize("namespace", ["", "Upper", "a.b", 5])
def test_a_namespace_that_cannot_be_one_is_refused(api, configuration_for, namespace):
    with pytest.raises(ValueError, match="expected the name of a namespace"):
        init(client_config=configuration_for(api.url), namespace=namespace)
