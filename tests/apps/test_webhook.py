"""The webhook as the process serves it: in force on a real API server, with certificates of either kind."""

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tessera.admission import DEFAULT_SETTINGS
from tessera.admission.certificates.pod_local import PodLocal, make_pod_local
from tessera.admission.manifests import UrlAddress, webhook_manifest
from tessera.vendors.loading import load_catalogue
from testbed.requirements import TestbedFailed
from tests.apps.conftest import Bed, Document, eventually, fetch, status_of
from tests.scheduler.conftest import a_pod

CATALOGUE = load_catalogue()
NAME = "apps-webhook"
NOW = datetime.now(UTC) - timedelta(hours=1)
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "cards"},
    "spec": {"hard": {"requests.nvidia.com/gpu": "4"}},
}


def a_user_pod(name: str, count: int = 1) -> Document:
    """As users write it: no scheduler is named."""
    pod = a_pod(name, memory=1000, count=count)
    del pod["spec"]["schedulerName"]
    return pod


def a_plain_pod(name: str) -> Document:
    pod = a_user_pod(name)
    pod["spec"]["containers"][0]["resources"] = {}
    return pod


@contextmanager
def in_force(bed: Bed, address: str, bundle: bytes = b"") -> Iterator[None]:
    register(bed, address, bundle)
    try:
        yield
    finally:
        bed.cluster.kubectl("delete", "mutatingwebhookconfiguration", NAME)
        eventually(lambda: try_out(bed) == "default-scheduler", "the webhook is out of force")


def register(bed: Bed, address: str, bundle: bytes = b"") -> None:
    url = UrlAddress(url=f"https://{address}")
    manifest = webhook_manifest(CATALOGUE, DEFAULT_SETTINGS, url, name=NAME, authority=bundle)
    bed.cluster.kubectl("apply", "-f", "-", input=json.dumps(manifest))


def try_out(bed: Bed) -> str:
    """The scheduler that a pod with a card would get now, or why it would be refused."""
    try:
        command = ("create", "--dry-run=server", "-o", "json", "-f", "-")
        return json.loads(bed.cluster.kubectl(*command, input=json.dumps(a_user_pod("tried"))))["spec"]["schedulerName"]
    except TestbedFailed as refused:
        return str(refused)


@pytest.fixture
def kept(bed: Bed) -> Iterator[tuple[Bed, str]]:
    """The webhook in force, on a replica that does not decide, with certificates that it keeps by itself."""
    address = bed.address()
    with in_force(bed, address):
        bed.start_extender("--webhook", address, *kept_for(bed.host), "--follow-lease", "kube-system/held-by-nobody")
        yield bed, address
        bed.cluster.kubectl("delete", "secret", "webhook-tls")


def kept_for(host: str) -> tuple[str, ...]:
    """The flags for certificates that the process keeps by itself."""
    return ("--webhook-secret", "default/webhook-tls", "--webhook-configuration", NAME, "--webhook-host", host)


def test_a_replica_that_does_not_decide_completes_pods_with_certificates_of_its_own(kept: tuple[Bed, str]):
    bed, address = kept
    eventually(lambda: try_out(bed) == "hami-scheduler", "the pod is completed")
    secret = json.loads(bed.cluster.kubectl("get", "secret", "webhook-tls", "-o", "json"))
    assert set(secret["data"]) == {"ca.crt", "ca.key", "tls.crt", "tls.key"}
    assert status_of(f"https://{address}/readyz", unverified()) == 200, "to serve it need not decide"


def test_a_quota_that_is_used_up_is_told_to_the_pods_author(kept: tuple[Bed, str]):
    bed, _ = kept
    eventually(lambda: try_out(bed) == "hami-scheduler", "the pod is completed")
    bed.cluster.kubectl("create", "-f", "-", input=json.dumps(QUOTA))
    try:
        large = json.dumps(a_user_pod("large", count=5))
        wanted = "default/large: NVIDIA cards would be 5, the quota allows 4; ask for less"

        def is_denied() -> bool:
            try:
                bed.cluster.kubectl("create", "--dry-run=server", "-f", "-", input=large)
            except TestbedFailed as refused:
                return wanted in str(refused)
            return False

        eventually(is_denied, "the pod is denied in our words")
    finally:
        bed.cluster.kubectl("delete", "resourcequota", "cards")


def test_while_nobody_answers_pods_with_cards_are_refused_and_all_others_start(kept: tuple[Bed, str]):
    bed, _ = kept
    eventually(lambda: try_out(bed) == "hami-scheduler", "the webhook is in force")
    bed.stop_all()
    assert 'failed calling webhook "vgpu.hami.io"' in try_out(bed)
    bed.create(a_plain_pod("plain"))
    assert bed.pod("plain")["spec"]["schedulerName"] == "default-scheduler"


def test_a_webhook_without_a_scheduler_completes_and_refuses_pods_and_counts_them(bed: Bed):
    host = bed.cluster.machine.addresses.machine
    address, metrics = bed.address(host), bed.address(host)
    with in_force(bed, address):
        bed.start_webhook("--webhook", address, *kept_for(host), "--metrics", metrics)
        eventually(lambda: try_out(bed) == "hami-scheduler", "the pod is completed")
        confined = a_user_pod("confined")
        confined["spec"]["nodeName"] = "gpu-0000"
        with pytest.raises(TestbedFailed, match=r'spec\.nodeName is "gpu-0000", expected none beside'):
            bed.create(confined)

        shown = fetch(f"http://{metrics}/metrics")[1].decode()
        assert 'tessera_reviews_total{verdict="changed"}' in shown
        assert 'tessera_reviews_total{verdict="denied"} 1.0' in shown
        paths = ("/healthz", "/readyz", "/metrics", "/ledger")
        assert [status_of(f"https://{address}{path}", unverified()) for path in paths] == [200, 200, 404, 404]
        assert [status_of(f"http://{metrics}{path}") for path in paths] == [200, 200, 200, 404]
        assert status_of(f"http://{metrics}/webhook", None, {}) == 404
    bed.cluster.kubectl("delete", "secret", "webhook-tls")


def test_certificates_from_files_are_changed_while_the_api_server_asks(bed: Bed):
    """As cert-manager changes them: the new authority is trusted before its certificate is shown."""
    before, after = (make_pod_local((bed.host,), NOW) for _ in range(2))
    directory, address = bed.directory / "webhook-tls", bed.address()
    directory.mkdir()
    write(before, directory)
    bed.start_extender("--webhook", address, "--webhook-tls-dir", str(directory))
    with in_force(bed, address, before.authority + after.authority):
        eventually(lambda: try_out(bed) == "hami-scheduler", "the webhook is in force")
        with asking(bed) as answers:
            write(after, directory)
            eventually(lambda: shown_at(address) == after.serving.chain, "the new certificate is shown")
            register(bed, address, after.authority)
            count = len(answers)
            eventually(lambda: len(answers) > count + 3, "it is asked a few times more")
        assert set(answers) == {"hami-scheduler"}


def write(made: PodLocal, directory: Path) -> None:
    (directory / "tls.crt").write_bytes(made.serving.chain)
    (directory / "tls.key").write_bytes(made.serving.key)


def unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def shown_at(address: str) -> bytes:
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), 5) as connection, unverified().wrap_socket(connection) as secure:
        return ssl.DER_cert_to_PEM_cert(secure.getpeercert(binary_form=True) or b"").encode()


@contextmanager
def asking(bed: Bed) -> Iterator[list[str]]:
    """Pods are tried out one after the other for as long as the block lasts."""
    answers, is_over = list[str](), threading.Event()

    def ask() -> None:
        while not is_over.is_set():
            answers.append(try_out(bed))

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield answers
    finally:
        is_over.set()
        thread.join()
