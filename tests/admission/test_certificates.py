"""Certificates on a real API server: begun by several at once, rotated while it asks."""

import asyncio
from base64 import b64decode
from collections.abc import Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
import pytest_asyncio

from tessera.admission import DEFAULT_SETTINGS, Webhook
from tessera.admission.certificates import Keeper, Lifetimes, Place, ServingContext
from tessera.admission.manifests import UrlAddress, webhook_manifest
from tessera.errors import InvalidInput, ServerFailed
from tessera.kube import Client, ObjectKey, PatchType, find_access, kind_of
from tessera.kube.kinds import PODS, SECRETS
from tests.admission.conftest import CATALOGUE, a_pod
from tests.admission.server import WebhookServer

LIFETIMES = Lifetimes(authority=timedelta(days=90), serving=timedelta(days=80), announced=timedelta(minutes=10))
CONFIGURATION = "rotating"
CONFIGURATIONS = kind_of(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)
WITHOUT_BUNDLE = {"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}
GPU = {"nvidia.com/gpu": "1"}


class Calendar:
    """A clock set by hand. The API server goes by the real one, so certificates are made in its past."""

    def __init__(self) -> None:
        self.today = datetime.now(UTC)
        self.days = -70.0

    def wall(self) -> datetime:
        return self.today + timedelta(days=self.days)

    def monotonic_s(self) -> float:
        return self.days * 86_400

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Replica:
    def __init__(self, client: Client, place: Place, calendar: Calendar) -> None:
        self.serving = ServingContext()
        self.keeper = Keeper(client, place, self.serving, lifetimes=LIFETIMES, clock=calendar)


@pytest_asyncio.fixture
async def client(admission_api):
    async with Client(find_access(admission_api.cluster.kubeconfig)) as client:
        yield client


@pytest.fixture
def place(admission_api, namespace) -> Place:
    names = (admission_api.host, f"hami-scheduler.{namespace}.svc")
    return Place(secret=ObjectKey(namespace, "hami-scheduler-tls"), configuration=CONFIGURATION, names=names)


@pytest.fixture
def calendar() -> Calendar:
    return Calendar()


@pytest.fixture
def replicas(client, place, calendar):
    return [Replica(client, place, calendar) for _ in range(6)]


@pytest.fixture
def in_force(admission_api, namespace, replicas) -> Iterator[WebhookServer]:
    """The webhook, served by the first replica, for the pods of this test alone; nobody has certificates yet."""
    server = WebhookServer(admission_api.host, replicas[0].serving.context, Webhook(CATALOGUE, DEFAULT_SETTINGS))
    manifest = webhook_manifest(CATALOGUE, DEFAULT_SETTINGS, UrlAddress(url=server.url), name=CONFIGURATION)
    for hook in manifest["webhooks"]:
        hook["namespaceSelector"]["matchLabels"] = {"kubernetes.io/metadata.name": namespace}
    admission_api.apply(manifest)
    with server.running():
        yield server
    admission_api.delete(manifest)


def rights_of(user, place):
    """Roles for keeping certificates, bound to the user. Nobody can be given `create` of one name only."""
    group, namespace, name = "rbac.authorization.k8s.io", place.secret.namespace, f"certificates-{user}"
    kept = {"apiGroups": [""], "resources": ["secrets"]}
    configured = {
        "apiGroups": ["admissionregistration.k8s.io"],
        "resources": ["mutatingwebhookconfigurations"],
        "resourceNames": [place.configuration],
        "verbs": ["get", "patch"],
    }
    rules = {
        "Role": [
            kept | {"verbs": ["create"]},
            kept | {"verbs": ["get", "patch"], "resourceNames": [place.secret.name]},
        ],
        "ClusterRole": [configured],
    }
    for kind, granted in rules.items():
        metadata = {"name": name} | ({"namespace": namespace} if kind == "Role" else {})
        yield {"apiVersion": f"{group}/v1", "kind": kind, "metadata": metadata, "rules": granted}
        yield {
            "apiVersion": f"{group}/v1",
            "kind": f"{kind}Binding",
            "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": kind, "name": name},
            "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
        }


async def secret_of(client, place):
    secret = await client.get(SECRETS, place.secret.name, namespace=place.secret.namespace)
    return {field: b64decode(value) for field, value in secret["data"].items()}


async def is_answered(client, namespace):
    pod = await client.create(PODS, a_pod("trainer", namespace, limits=GPU), namespace=namespace, dry_run=True)
    return pod["spec"]["schedulerName"] == "hami-scheduler"


async def until_answered(client, namespace):
    """An API server takes note of a new bundle a moment after it was written."""
    async with asyncio.timeout(30):
        while True:
            try:
                if await is_answered(client, namespace):
                    return
            except ServerFailed:
                await asyncio.sleep(0.1)


@asynccontextmanager
async def asking_all_the_while(client, namespace):
    """Pods are created without a pause; every one must get its answer. Gives a wait for twenty more of them."""
    answers = 0

    async def ask():
        nonlocal answers
        while True:
            assert await is_answered(client, namespace)
            answers += 1

    async def twenty_more():
        wanted = answers + 20
        while answers < wanted:
            await asyncio.sleep(0.01)

    async with asyncio.TaskGroup() as group:
        asking = group.create_task(ask())
        yield twenty_more
        asking.cancel()


@pytest.mark.asyncio
@pytest.mark.usefixtures("in_force")
async def test_replicas_that_begin_at_once_end_up_with_one_certificate(client, place, replicas, namespace):
    await asyncio.gather(*(replica.keeper.keep() for replica in replicas))
    await asyncio.gather(*(replica.keeper.keep() for replica in replicas))
    data = await secret_of(client, place)
    assert data["ca.crt"].count(b"BEGIN CERTIFICATE") == 1
    assert {replica.serving.shown.chain for replica in replicas} == {data["tls.crt"]}
    await until_answered(client, namespace)


@pytest.mark.asyncio
@pytest.mark.usefixtures("in_force")
async def test_no_request_fails_while_everything_is_rotated(client, place, calendar, replicas, namespace):
    slow, quick = replicas[:2]
    await slow.keeper.keep()
    await until_answered(client, namespace)
    first = await secret_of(client, place)
    async with asking_all_the_while(client, namespace) as twenty_more:
        calendar.days = -9
        await quick.keeper.keep()
        announced = await secret_of(client, place)
        assert announced["ca.crt"].endswith(first["ca.crt"])
        assert announced["tls.crt"] == first["tls.crt"]
        await twenty_more()
        calendar.days += 1 / 24
        await quick.keeper.keep()
        signed = await secret_of(client, place)
        assert signed["tls.crt"] != first["tls.crt"]
        await twenty_more()
        await slow.keeper.keep()
        assert slow.serving.shown.chain == signed["tls.crt"]
        await twenty_more()
        calendar.days = 21
        await quick.keeper.keep()
        assert announced["ca.crt"].startswith((await secret_of(client, place))["ca.crt"])
        await twenty_more()


class Interrupted:
    """A client whose first apply is held up until something else has happened."""

    def __init__(self, client: Client, happening: Callable[[], Awaitable[None]]) -> None:
        self._happenings = [happening]
        self.get, self._apply = client.get, client.apply

    async def apply(self, *arguments: Any, **options: Any) -> Any:
        while self._happenings:
            await self._happenings.pop()()
        return await self._apply(*arguments, **options)


@pytest.mark.asyncio
@pytest.mark.usefixtures("in_force")
async def test_a_replica_that_was_held_up_does_not_take_back_an_announcement(client, place, calendar, replicas):
    await replicas[0].keeper.keep()
    await client.patch(CONFIGURATIONS, CONFIGURATION, [WITHOUT_BUNDLE], patch_type=PatchType.JSON)

    async def announce():
        calendar.days = -9
        await replicas[0].keeper.keep()
        await replicas[0].keeper.keep()

    held_up = Keeper(cast("Client", Interrupted(client, announce)), place, ServingContext(), lifetimes=LIFETIMES)
    await held_up.keep()
    configuration = await client.get(CONFIGURATIONS, CONFIGURATION)
    bundle = b64decode(configuration["webhooks"][0]["clientConfig"]["caBundle"])
    assert bundle == (await secret_of(client, place))["ca.crt"]
    assert bundle.count(b"BEGIN CERTIFICATE") == 2


@pytest.mark.asyncio
@pytest.mark.usefixtures("in_force")
async def test_a_few_rights_are_enough(admission_api, client, place, calendar):
    """Those that docs/admission.md names."""
    admission_api.apply(*rights_of("keeper", place))
    async with Client(find_access(admission_api.cluster.control_plane.kubeconfig_for("keeper"))) as keeper:
        replica = Replica(keeper, place, calendar)
        await replica.keeper.keep()
        calendar.days = -9
        await replica.keeper.keep()
        calendar.days = -8
        await replica.keeper.keep()
    assert (await secret_of(client, place))["ca.crt"].count(b"BEGIN CERTIFICATE") == 2


@pytest.mark.asyncio
async def test_a_webhook_configuration_may_come_later(client, place, replicas):
    await replicas[0].keeper.keep()
    assert replicas[0].serving.shown.chain == (await secret_of(client, place))["tls.crt"]


@pytest.mark.asyncio
async def test_a_secret_that_was_made_empty_is_filled(client, place, replicas):
    await client.create(SECRETS, {"metadata": {"name": place.secret.name}}, namespace=place.secret.namespace)
    await replicas[0].keeper.keep()
    assert sorted(await secret_of(client, place)) == ["ca.crt", "ca.key", "tls.crt", "tls.key"]


@pytest.mark.asyncio
async def test_a_secret_of_somebody_else_is_not_touched(client, place, replicas):
    body = {"metadata": {"name": place.secret.name}, "data": {"tls.crt": "eA==", "ca.crt": "eA=="}}
    await client.create(SECRETS, body, namespace=place.secret.namespace)
    with pytest.raises(InvalidInput) as refused:
        await replicas[0].keeper.keep()
    assert str(refused.value) == (
        f"secret {place.secret}: ca.key is missing, expected ca.crt, ca.key, tls.crt, tls.key; delete the secret to"
        " have it made anew, or follow its files if cert-manager keeps it"
    )
