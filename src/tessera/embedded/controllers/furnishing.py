"""What every namespace has from the start, and gets again if it is taken away."""

from tessera.embedded.controllers.objects import NAMESPACES, Thing
from tessera.embedded.controllers.watching import Watching, Work
from tessera.embedded.controllers.writes import Create, Write, carry_out
from tessera.embedded.resources.furniture import ACCOUNT, TRUST, account, trust
from tessera.kube.client import Client
from tessera.kube.informer import Informer
from tessera.kube.kinds import CONFIG_MAPS, SERVICE_ACCOUNTS, Kind, Selection
from tessera.kube.objects import Document, ObjectKey
from tessera.kube.reconciler import Reconciler


def missing_from(namespace: str, authority: str) -> tuple[Write, Write]:
    return (
        Create(SERVICE_ACCOUNTS, ObjectKey(namespace, ACCOUNT), account(namespace)),
        Create(CONFIG_MAPS, ObjectKey(namespace, TRUST), trust(namespace, authority)),
    )


class Furnishing:
    """`works` belong in a TaskGroup of the caller, beside that of `watching`."""

    def __init__(self, client: Client, watching: Watching, authority: str) -> None:
        self._client = client
        self._authority = authority
        self._namespaces = watching.follow(NAMESPACES)
        self._pieces = (_named(client, SERVICE_ACCOUNTS, ACCOUNT), _named(client, CONFIG_MAPS, TRUST))
        self._reconciler: Reconciler[str] = Reconciler("namespace contents", self._reconcile)
        self._namespaces.subscribe(lambda change: self._reconciler.mark(change.key.name))
        for informer in self._pieces:
            informer.subscribe(lambda change: self._reconciler.mark(change.key.namespace))

    def works(self) -> list[Work]:
        return [*(informer.run() for informer in self._pieces), self._run()]

    async def _run(self) -> None:
        for informer in (self._namespaces, *self._pieces):
            await informer.synced()
        await self._reconciler.run()

    async def _reconcile(self, name: str) -> None:
        namespace = self._namespaces.get(ObjectKey("", name))
        if namespace is None or namespace.metadata.is_going:
            return
        wanted = zip(missing_from(name, self._authority), self._pieces, strict=True)
        await carry_out(self._client, [write for write, informer in wanted if informer.get(write.key) is None])


def _named(client: Client, kind: Kind[Document], name: str) -> Informer[Thing]:
    return Informer(client, kind.decoded_as(Thing), Selection(fields=f"metadata.name={name}"))
