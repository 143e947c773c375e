"""When the Python client asks again, and in which sentence it gives up."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError, ProtocolError

from examples.client.python.hami_client import PAUSES_S, AuthenticationError, HAMiError, call, connect

SERVER = "https://198.18.0.1:6443"


def refusal(status: int, message: str = "no", *, reason: str = "", retry_after: str = "") -> ApiException:
    refused = ApiException(status=status, reason="Said", body=json.dumps({"message": message, "reason": reason}))
    refused.headers = {"Retry-After": retry_after} if retry_after else {}
    return refused


class Asking:
    """A request that fails in these ways, one after the other, and then has an answer."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.pauses_s: list[float] = []

    def __call__(self) -> str:
        if self.failures:
            raise self.failures.pop(0)
        return "answer"

    def run(self) -> str:
        return call("listing nodes", SERVER, self, self.pauses_s.append)

    def sentence(self, kind: type[HAMiError] = HAMiError) -> str:
        with pytest.raises(kind) as refused:
            self.run()
        return str(refused.value)


PASSING: list[Callable[[], Exception]] = [
    lambda: refusal(409, reason="Conflict"),
    lambda: refusal(429),
    lambda: refusal(500),
    lambda: refusal(503),
    lambda: ProtocolError("Connection aborted."),
]


@pytest.mark.parametrize("failure", PASSING)
def test_what_may_pass_is_asked_again_after_growing_pauses(failure: Callable[[], Exception]):
    asking = Asking(failure(), failure(), failure())
    assert asking.run() == "answer"
    assert len(asking.pauses_s) == 3
    assert asking.pauses_s == sorted(asking.pauses_s)


@pytest.mark.parametrize("failure", PASSING)
def test_what_does_not_pass_ends_in_one_sentence(failure: Callable[[], Exception]):
    asking = Asking(*(failure() for _ in range(20)))
    assert asking.sentence().startswith("listing nodes failed: ")
    assert len(asking.pauses_s) == len(PAUSES_S)


@pytest.mark.parametrize("refused", [refusal(404), refusal(422), refusal(401), refusal(409, reason="AlreadyExists")])
def test_what_cannot_pass_is_asked_once(refused: ApiException):
    asking = Asking(refused)
    asking.sentence()
    assert asking.pauses_s == []


def test_the_pause_that_the_server_asks_for_is_made_and_no_endless_one():
    asking = Asking(refusal(429, retry_after="3"), refusal(429, retry_after="3600"), refusal(429, retry_after="soon"))
    asking.run()
    assert asking.pauses_s[:2] == [3.0, 10.0]
    assert asking.pauses_s[2] < 2


def test_a_refusal_tells_what_the_api_server_said():
    asking = Asking(refusal(409, 'pods "train" already exists', reason="AlreadyExists"))
    assert asking.sentence() == 'listing nodes failed: pods "train" already exists (409)'


def test_credentials_that_are_not_accepted_are_told():
    assert Asking(refusal(401, "Unauthorized")).sentence(AuthenticationError) == (
        f"listing nodes failed: {SERVER} does not accept our credentials (401 Unauthorized);"
        " test them: kubectl cluster-info"
    )


def test_a_missing_right_is_told_apart_from_a_denied_pod():
    missing = 'nodes is forbidden: User "ada" cannot list resource "nodes" in API group "" at the cluster scope'
    assert Asking(refusal(403, missing)).sentence(AuthenticationError) == (
        f"listing nodes failed: {missing}; give that user or service account the right by RBAC"
    )
    denied = 'admission webhook "vgpu.hami.io" denied the request: default/train: nvidia.com/gpu is "x"'
    assert Asking(refusal(403, denied)).sentence() == f"listing nodes failed: {denied} (403)"


@pytest.mark.parametrize(
    "failure", [HTTPError("HTTPSConnection(host='h', port=1): refused"), ApiException(0, "refused")]
)
def test_a_server_that_is_not_there_is_told(failure: Exception):
    assert Asking(*[failure] * 9).sentence(AuthenticationError) == (
        f"listing nodes failed: {SERVER} cannot be reached (refused); see that the cluster runs and that the kubeconfig"
        " is the right one: kubectl cluster-info"
    )


@pytest.mark.parametrize("text", [None, "", "[", "{}", "a: [b", "apiVersion: v1\nkind: Config\n"])
def test_a_kubeconfig_that_cannot_be_used_is_told(text: str | None, tmp_path: Any, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "config"
    if text is not None:
        file.write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(file))
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(file))  # read at import
    with pytest.raises(AuthenticationError) as refused:
        connect()
    sentence = str(refused.value)
    assert sentence.startswith(f"{file} is no kubeconfig that can be used (")
    assert sentence.endswith("; test it: kubectl cluster-info, or name another")
    assert "\n" not in sentence


def test_in_a_pod_the_service_account_is_used(tmp_path: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "198.18.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    (tmp_path / "token").write_text("secret")
    (tmp_path / "ca.crt").write_text("authority")
    monkeypatch.setattr("kubernetes.config.incluster_config.SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr("kubernetes.config.incluster_config.SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    found = connect()
    assert found.host == SERVER
    assert list(found.api_key.values()) == ["bearer secret"]
