"""Who is ready for what: to decide is one thing, to serve the webhook and the metrics another."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tessera.admission.certificates.pod_local import make_pod_local
from tessera.apps.addresses import Address
from tessera.apps.extender_options import Options
from tessera.apps.listeners import Listeners
from tessera.apps.secure_listener import SecureAddress
from tessera.model.requests import PolicyChoice
from tessera.scheduler.extender import Extender
from tessera.scheduler.hami_metrics import HamiPage
from tessera.scheduler.metrics import Figures
from tessera.scheduler.phases import Phases
from tessera.scheduler.volcano import Volcano
from tests.unit.apps.asking import ask
from tests.unit.scheduler.cluster import a_pod, a_world

pytestmark = pytest.mark.asyncio
NODES = ["a", "b"]


class Served:
    """A process that has read everything and decides, unless it is told otherwise."""

    def __init__(self) -> None:
        self.has_read, self.leads = True, True
        self.world = a_world(a="2xA100-SXM4-80GB", b="1xA100-SXM4-80GB")
        phases = Phases(self.world)
        self.figures = Figures()
        self.extender = Extender(phases, None, is_ready=self.decides)  # type: ignore[arg-type] # nothing is bound
        self.volcano = Volcano(self.world, phases, is_ready=self.decides)
        self.page = HamiPage(self.world, (), lambda: (), old_names=False)

    def has_read_all(self) -> bool:
        return self.has_read

    def decides(self) -> bool:
        return self.has_read and self.leads


def listening(served: Served) -> tuple[Listeners, dict[int, Any]]:
    """Everything on port 1, the webhook on 2, metrics on 3."""
    options = Options(
        kubeconfig=None,
        policy=PolicyChoice(),
        http=Address("127.0.0.1", 1),
        https=None,
        webhook=SecureAddress(Address("127.0.0.1", 2), Path("/nowhere")),
        metrics=Address("127.0.0.1", 3),
        legacy_metrics=False,
        bind_events=False,
        leader_elect=False,
        follow_lease=None,
        follow_host="",
        lease_namespace="default",
    )
    listeners = Listeners(None, options, served)  # type: ignore[arg-type] # no certificate is kept
    return listeners, {listener.port: listener.app for listener in listeners.all()}


async def readiness(apps: dict[int, Any]) -> list[int]:
    return [(await ask(apps[port], "GET", "/readyz")).status for port in (1, 2, 3)]


async def test_the_webhook_is_ready_once_all_is_read_and_a_certificate_is_shown_whoever_leads():
    served = Served()
    served.has_read = served.leads = False
    listeners, apps = listening(served)
    assert await readiness(apps) == [503, 503, 503]
    served.has_read = True
    assert await readiness(apps) == [503, 503, 503]
    made = make_pod_local(["localhost"], datetime.now(UTC))
    assert listeners._webhook is not None
    listeners._webhook.certificate.use(made.serving)
    assert await readiness(apps) == [503, 200, 200]
    served.leads = True
    assert await readiness(apps) == [200, 200, 200]
    served.has_read = False
    assert await readiness(apps) == [503, 503, 503]


async def test_kube_scheduler_and_volcano_may_ask_for_the_same_verb():
    _, apps = listening(Served())
    pod = a_pod()
    ours = {"Pod": pod, "NodeNames": NODES}
    theirs = {"task": {"Pod": pod}, "nodes": [{"Name": name} for name in NODES]}
    assert (await ask(apps[1], "POST", "/prioritize", encoded(ours))).body.startswith(b'[{"Host":')
    assert (await ask(apps[1], "POST", "/prioritize", encoded(theirs))).body.startswith(b'{"nodeScore":')
    assert (await ask(apps[1], "POST", "/volcano/prioritize", encoded(theirs))).body.startswith(b'{"nodeScore":')
    neither = await ask(apps[1], "POST", "/prioritize", b"{}")
    assert (neither.status, neither.body[:34]) == (400, b"the body is no ExtenderArgs of kub")


async def test_scores_are_not_given_by_a_scheduler_that_does_not_decide():
    served = Served()
    served.leads = False
    _, apps = listening(served)
    answer = await ask(apps[1], "POST", "/prioritize", encoded({"Pod": a_pod(), "NodeNames": NODES}))
    assert answer.status == 503


async def test_reviews_are_counted_by_what_was_said():
    served = Served()
    _, apps = listening(served)
    for pod, name in ((a_pod(), "completed"), ({"metadata": {}, "spec": {"containers": []}}, "empty")):
        question = {"uid": name, "kind": {"kind": "Pod"}, "operation": "CREATE", "namespace": "default", "object": pod}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": question}
        assert (await ask(apps[2], "POST", "/webhook", encoded(review))).status == 200
    assert (await ask(apps[2], "POST", "/webhook", b"no")).status == 400
    page = (await ask(apps[3], "GET", "/metrics")).body.decode()
    for verdict in ("changed", "denied", "unreadable"):
        assert f'tessera_reviews_total{{verdict="{verdict}"}} 1.0' in page
    assert 'tessera_request_seconds_count{verb="webhook"} 3.0' in page
    assert 'hami_gpu_shared_count{zone="vGPU",node="a"' in page


def encoded(message: object) -> bytes:

    return json.dumps(message).encode()
