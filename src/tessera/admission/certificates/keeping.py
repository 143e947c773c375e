"""Keeps the webhook's certificates in a Secret and its authorities in the webhook configuration.

Every replica does the same; none leads. A write names the state that it was decided on, and whoever comes second looks
again. What is announced in the configuration is always ahead of what is signed, so no order of replicas cuts anybody
off.
"""

import random
from base64 import b64decode, b64encode

import msgspec
import structlog

from tessera.admission.certificates.authorities import read_certificate
from tessera.admission.certificates.renewal import (
    DEFAULT_LIFETIMES,
    Lifetimes,
    Material,
    Step,
    next_step,
    split_bundle,
    take_step,
)
from tessera.admission.certificates.serving import ServingContext
from tessera.errors import AlreadyExists, Conflict, InvalidInput, KubeError, NotFound
from tessera.kube import Client, ObjectKey, ObjectMeta, kind_of
from tessera.kube.kinds import SECRETS
from tessera.kube.timing import SYSTEM_CLOCK, Clock
from tessera.kube.tls import Certificate

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_MANAGER = "tessera-certificates"
_MOST_STEPS = 8
_FIELDS = ("ca.crt", "ca.key", "tls.crt", "tls.key")


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where things are kept, and the names under which the API server reaches us."""

    secret: ObjectKey
    configuration: str
    names: tuple[str, ...]


class _Secret(msgspec.Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    data: dict[str, str] | None = None


class _ClientConfig(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    ca_bundle: str | None = None


class _Webhook(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    name: str
    client_config: _ClientConfig


class _Configuration(msgspec.Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    webhooks: tuple[_Webhook, ...] = ()


_OUR_SECRETS = SECRETS.decoded_as(_Secret)
_CONFIGURATIONS = kind_of(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)
_OUR_CONFIGURATIONS = _CONFIGURATIONS.decoded_as(_Configuration)


class Keeper:
    def __init__(
        self,
        client: Client,
        place: Place,
        serving: ServingContext,
        *,
        lifetimes: Lifetimes = DEFAULT_LIFETIMES,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client = client
        self._place = place
        self._serving = serving
        self._lifetimes = lifetimes
        self._clock = clock

    async def run(self, *, every_s: float = 60.0) -> None:
        """Look after the certificates; ends when cancelled. A failure is told and tried again."""
        while True:
            try:
                await self.keep()
            except (KubeError, InvalidInput) as error:
                log.warning("certificates not kept", secret=str(self._place.secret), error=str(error))
            await self._clock.sleep(every_s * random.uniform(0.8, 1.2))

    async def keep(self) -> None:
        """Do what is to be done now. Returns when nothing is, or when API servers must hear of it first.

        The configuration is read before the Secret: a bundle that is older than what it holds is then never written.
        """
        for _ in range(_MOST_STEPS):
            configuration = await self._read_configuration()
            secret = await self._read_secret()
            material = _read_material(secret, self._place.secret) if secret and secret.data else None
            if material and await self._put_in_force(material, configuration):
                return
            step = next_step(material, self._place.names, self._lifetimes, self._clock.wall())
            if step is Step.KEEP:
                return
            taken = take_step(step, material, self._place.names, self._lifetimes, self._clock.wall())
            if await self._write_secret(secret, taken):
                log.info("certificates changed", secret=str(self._place.secret), step=step.value)

    async def _put_in_force(self, material: Material, configuration: _Configuration | None) -> bool:
        """Whether API servers have yet to hear of it. What is in the Secret may be shown: it was announced before."""
        if self._serving.use(material.serving):
            log.info("serving certificate loaded", secret=str(self._place.secret))
        if configuration is None:
            log.warning("webhook configuration missing", name=self._place.configuration)
            return True
        bundle = b64encode(material.bundle).decode()
        if all(webhook.client_config.ca_bundle == bundle for webhook in configuration.webhooks):
            return False
        await self._publish(bundle, configuration)
        return True

    async def _publish(self, bundle: str, configuration: _Configuration) -> None:
        body = {
            "apiVersion": _CONFIGURATIONS.api_version,
            "kind": _CONFIGURATIONS.name,
            "metadata": {
                "name": self._place.configuration,
                "resourceVersion": configuration.metadata.resource_version,
            },
            "webhooks": [
                {"name": webhook.name, "clientConfig": {"caBundle": bundle}} for webhook in configuration.webhooks
            ],
        }
        try:
            await self._client.apply(_CONFIGURATIONS, self._place.configuration, body, manager=_MANAGER, force=True)
        except Conflict:
            log.info("webhook configuration changed meanwhile", name=self._place.configuration)

    async def _read_configuration(self) -> _Configuration | None:
        try:
            return await self._client.get(_OUR_CONFIGURATIONS, self._place.configuration)
        except NotFound:
            return None

    async def _read_secret(self) -> _Secret | None:
        key = self._place.secret
        try:
            return await self._client.get(_OUR_SECRETS, key.name, namespace=key.namespace)
        except NotFound:
            return None

    async def _write_secret(self, before: _Secret | None, material: Material) -> bool:
        """Whether it was written; if not, somebody else was faster."""
        key, data = self._place.secret, _write_material(material)
        try:
            if before is None:
                metadata = {"name": key.name, "namespace": key.namespace}
                body = {"metadata": metadata, "type": "kubernetes.io/tls", "data": data}
                await self._client.create(SECRETS, body, namespace=key.namespace)
            else:
                body = {"metadata": {"resourceVersion": before.metadata.resource_version}, "data": data}
                await self._client.patch(SECRETS, key.name, body, namespace=key.namespace)
        except (AlreadyExists, Conflict):
            return False
        return True


def _read_material(secret: _Secret, key: ObjectKey) -> Material:
    data = secret.data or {}
    for field in _FIELDS:
        if field not in data:
            raise InvalidInput(
                f"secret {key}: {field} is missing, expected {', '.join(_FIELDS)}; delete the secret to have it made"
                " anew, or follow its files if cert-manager keeps it"
            )
    authorities, authority_key, chain, serving_key = (b64decode(data[field]) for field in _FIELDS)
    read_certificate(chain, f"secret {key}: tls.crt")
    return Material(
        authorities=split_bundle(authorities, f"secret {key}: ca.crt"),
        authority_key=authority_key,
        serving=Certificate(chain, serving_key),
    )


def _write_material(material: Material) -> dict[str, str]:
    parts = (material.bundle, material.authority_key, material.serving.chain, material.serving.key)
    return {field: b64encode(part).decode() for field, part in zip(_FIELDS, parts, strict=True)}
