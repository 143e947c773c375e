"""Widgets: custom resources for tests, each definition in an API group of its own."""

import json
from typing import Any

from tests.contract.api import Api, Collection, Object
from tests.contract.waiting import eventually

DEFINITIONS = "apiextensions.k8s.io/v1/customresourcedefinitions"
NAMES = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(
    group: str,
    schema: Object | None = None,
    *,
    scope: str = "Namespaced",
    names: Object = NAMES,
    **version: Any,
) -> Object:
    """A resource with one version, `v1`, whose schema describes what is beside metadata."""
    properties = schema or {"spec": ANYTHING}
    served = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": names,
            "versions": [served | version],
        },
    }


def is_established(definition: Object) -> bool:
    conditions = definition.get("status", {}).get("conditions") or []  # null at first
    return any(condition["type"] == "Established" and condition["status"] == "True" for condition in conditions)


class Widgets(Collection):
    """The objects of one definition."""

    def __init__(self, api: Api, definition: Object, namespace: str) -> None:
        self.group: str = definition["spec"]["group"]
        scope = f"namespaces/{namespace}/" if definition["spec"]["scope"] == "Namespaced" else ""
        super().__init__(api, f"/apis/{self.group}/v1/{scope}widgets")

    def widget(self, name: str, spec: Any = None, **metadata: Any) -> Object:
        body = {"apiVersion": f"{self.group}/v1", "kind": "Widget", "metadata": {"name": name} | metadata}
        return body if spec is None else body | {"spec": spec}

    def wait_until_served(self) -> None:
        """Established is said a moment before the last of the server's handlers knows it."""
        eventually(lambda: self.api.send("GET", self.path).status == 200)

    def wait_until_discovered(self) -> None:
        """What is served is a moment later told to those who ask what there is."""
        eventually(lambda: self.group in [group["name"] for group in self.api.get("/apis")["groups"]])
        eventually(lambda: f"apis/{self.group}/v1" in openapi_index(self.api))


def openapi_index(api: Api) -> Object:
    """Where the schemas of each group are; JSON that kube-apiserver calls text/plain."""
    body = api.get("/openapi/v3")
    return (json.loads(body) if isinstance(body, str) else body)["paths"]


class Definitions:
    """Makes each definition once, however many tests use it.

    A server may hold the first object back for a while after its definition: kube-apiserver sleeps for two seconds.
    """

    def __init__(self, api: Api, domain: str) -> None:
        self._api = api
        self._domain = domain
        self._made: dict[str, Object] = {}

    def serve(self, namespace: str, **wanted: Any) -> Widgets:
        """Widgets of this schema and these version fields in the namespace."""
        key = json.dumps(wanted, sort_keys=True)
        if key in self._made:
            return Widgets(self._api, self._made[key], namespace)
        made = definition(f"group{len(self._made)}.{self._domain}", **wanted)
        self._made[key] = self._api.collection(DEFINITIONS).create(made)
        widgets = Widgets(self._api, made, namespace)
        widgets.wait_until_served()
        widgets.wait_until_discovered()
        return widgets

    def remove(self) -> None:
        for made in self._made.values():
            self._api.collection(DEFINITIONS).delete(made["metadata"]["name"])
