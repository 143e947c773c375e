"""Computes and what belongs to them, as the API server keeps them."""

import base64
import binascii
import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from kubernetes import client

from kpu.client.api import DEADLINE_S, Api, Object, names_an_object, status_of
from kpu.client.models import API_VERSION, KpuV1alpha1Compute
from kpu.errors import Unreachable

MANAGER = "kpu-python-client"
GONE = 404
FORBIDDEN = 403
CONFLICT = 409
INVALID = 422
GRACE = "compute.kpu.dev/deletion-grace-seconds"
FINALIZER = "compute.kpu.dev/deletion"
SERVER = "kpu-torch-server"
"""What every operator names the pods of a Compute after."""
PORT_NAME = "grpc"
LONGEST_SET_NAME, HASH_LENGTH = 52, 8
"""What our operator shortens the name of a StatefulSet to, and how much of that is a hash of the whole name."""
UPDATES = 5
"""How often a write that others came before is tried again."""


class Event(NamedTuple):
    """`type` is Normal or Warning; `key` tells one event, and how often it came, from another."""

    when: datetime
    type: str
    reason: str
    message: str
    key: tuple[Any, ...]


class PodPort(NamedTuple):
    """A port of a pod, which has this path on the API server."""

    path: str
    port: int


class Computes:
    """Those of one namespace. Every method asks the API server and blocks until it has answered."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api = api
        self.namespace = namespace
        self._core = f"/api/v1/namespaces/{namespace}"
        self._path = f"/apis/{API_VERSION}/namespaces/{namespace}/computes"

    def apply(self, manifest: Object) -> KpuV1alpha1Compute:
        try:
            applied = self.api.apply(f"{self._path}/{manifest['metadata']['name']}", manifest, MANAGER)
        except client.ApiException as error:
            if status_of(error) == GONE and not names_an_object(error):
                error.reason = (
                    f"{self.api.url} does not know computes.{API_VERSION}: the KPU operator is not installed there; "
                    "install it, or point KUBECONFIG at a cluster that has it"
                )
            raise
        return KpuV1alpha1Compute.from_dict(applied)

    def apply_to(self, live: KpuV1alpha1Compute | None, manifest: Object) -> KpuV1alpha1Compute | None:
        """None if that very Compute is gone or going: no other is made in its place, and none that was is changed."""
        if live is None or live.metadata.deletion_timestamp is not None:
            return None
        uid = live.metadata.uid
        try:
            return self.apply({**manifest, "metadata": {**manifest["metadata"], "uid": uid}})
        except client.ApiException as error:
            now = self.get(live.metadata.name) if status_of(error) in (CONFLICT, INVALID) else live
            if now is not None and now.metadata.uid == uid:
                raise
            return None

    def get(self, name: str, deadline_s: float = DEADLINE_S) -> KpuV1alpha1Compute | None:
        """None if there is no such Compute."""
        try:
            return KpuV1alpha1Compute.from_dict(self.api.get(f"{self._path}/{name}", deadline_s=deadline_s))
        except client.ApiException as error:
            if status_of(error) == GONE:
                return None
            raise

    def changes(self, name: str, since: str, lasting_s: int, quiet_s: float) -> Iterator[KpuV1alpha1Compute]:
        """What one Compute changes to. Ends after `lasting_s`, or when it is deleted or its history forgotten."""
        query = {
            "fieldSelector": f"metadata.name={name}",
            "resourceVersion": since,
            "timeoutSeconds": str(lasting_s),
        }
        for event in self.api.watch(self._path, query, quiet_s):
            match event["type"]:
                case "ADDED" | "MODIFIED":
                    yield KpuV1alpha1Compute.from_dict(event["object"])
                case "DELETED" | "ERROR":
                    return
                case _:
                    pass

    def delete(self, name: str, grace_period_seconds: int, propagation: str) -> bool:
        """False if it was not there."""
        options = {"propagationPolicy": propagation, "gracePeriodSeconds": grace_period_seconds}
        try:
            self.api.delete(f"{self._path}/{name}", options)
        except client.ApiException as error:
            if status_of(error) == GONE:
                return False
            raise
        return True

    def ask_for_grace(self, name: str, grace_period_seconds: int) -> None:
        """Have our operator end the pod with this grace before it lets the Compute go."""
        for attempt in range(UPDATES):
            found = self.get(name)
            if found is None or found.metadata.deletion_timestamp is not None:
                return
            metadata = {
                "resourceVersion": found.metadata.resource_version,
                "annotations": {GRACE: str(grace_period_seconds)},
                "finalizers": [*{*(found.metadata.finalizers or ()), FINALIZER}],
            }
            try:
                self.api.merge(f"{self._path}/{name}", {"metadata": metadata}, MANAGER)
            except client.ApiException as error:
                if status_of(error) == CONFLICT and attempt < UPDATES - 1:
                    continue
                if status_of(error) != GONE:
                    raise
            return

    def secret(self, name: str, deadline_s: float = DEADLINE_S) -> dict[str, bytes]:
        """What is in it; nothing if there is none or we may not read it."""
        found = self._read_if_allowed(f"{self._core}/secrets/{name}", {}, deadline_s)
        data: Mapping[str, str] = found.get("data") or {}
        return {key: _decoded(text) for key, text in data.items()}

    def pods(self, name: str, deadline_s: float = DEADLINE_S) -> Sequence[Object] | None:
        """Of the Compute of this name; None if we may not read them. Others may have an instance of that name too."""
        selector = {"labelSelector": f"app.kubernetes.io/name={SERVER},app.kubernetes.io/instance={name}"}
        return self._read_if_allowed(f"{self._core}/pods", selector, deadline_s).get("items")

    def events(self, name: str, since: datetime | None, deadline_s: float = DEADLINE_S) -> Sequence[Event]:
        """About the Compute, its StatefulSet and its pod, oldest first; none if we may not read them.

        `since` is when the Compute was made: what is older was about another one of the same name.
        """
        until_s = time.monotonic() + deadline_s
        about = dict.fromkeys((name, set_name(name), pod_name(name)))
        mine = [event for involved in about for event in self._events_about(involved, until_s)]
        return sorted((one for one in mine if since is None or one.when >= since), key=lambda one: one.when)

    def server_of(self, name: str, usual_port: int) -> PodPort:
        """The pod that runs now, and where it serves; what is usual where that may not be looked up."""
        pods = self.pods(name)
        if pods is None:
            return PodPort(f"{self._core}/pods/{pod_name(name)}", usual_port)
        running = [pod for pod in pods if pod.get("status", {}).get("phase") == "Running"]
        if not running:
            raise Unreachable(f"Compute {self.namespace}/{name} has no pod that runs")
        return PodPort(f"{self._core}/pods/{running[0]['metadata']['name']}", _port_of(running[0]) or usual_port)

    def _events_about(self, involved: str, until_s: float) -> Iterator[Event]:
        selector = {"fieldSelector": f"involvedObject.name={involved}"}
        left_s = max(until_s - time.monotonic(), 0.0)
        found = self._read_if_allowed(f"{self._core}/events", selector, left_s)
        return (read_event(event) for event in found.get("items") or ())

    def _read_if_allowed(self, path: str, query: dict[str, str], deadline_s: float) -> Object:
        try:
            return self.api.get(path, query, deadline_s)
        except client.ApiException as error:
            if status_of(error) in (GONE, FORBIDDEN):
                return {}
            raise


def set_name(name: str) -> str:
    """Of the StatefulSet of a Compute: its own name, shortened where its pods could not have the labels they get."""
    if len(name) <= LONGEST_SET_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:HASH_LENGTH]
    return f"{name[: LONGEST_SET_NAME - HASH_LENGTH - 1].rstrip('-')}-{digest}"


def pod_name(name: str) -> str:
    return f"{set_name(name)}-0"


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""


def _port_of(pod: Object) -> int | None:
    """Where its server listens: that of its Service may be another."""
    ports = [port for container in pod.get("spec", {}).get("containers", ()) for port in container.get("ports") or ()]
    return next((port["containerPort"] for port in ports if port.get("name") == PORT_NAME), None)


def read_event(document: Object) -> Event:
    told = document.get("lastTimestamp") or document.get("eventTime") or document["metadata"].get("creationTimestamp")
    return Event(
        when=datetime.fromisoformat(told) if told else datetime.now(UTC),
        type=document.get("type", "Normal"),
        reason=document.get("reason", ""),
        message=document.get("message", ""),
        key=(document["metadata"].get("uid"), document.get("count")),
    )
