"""Kinds and definitions that the tests of schemas share."""

from typing import Any

from tessera.embedded.kinds import Kind
from tessera.embedded.schemas import Schema, builtin_schema, read_definition

POD = Kind(version="v1", kind="Pod", plural="pods")
NODE = Kind(version="v1", kind="Node", plural="nodes", is_namespaced=False)
DEPLOYMENT = Kind(group="apps", version="v1", kind="Deployment", plural="deployments")
LEASE = Kind(group="coordination.k8s.io", version="v1", kind="Lease", plural="leases")
DEFINITION = Kind(
    group="apiextensions.k8s.io", version="v1", kind="CustomResourceDefinition", plural="customresourcedefinitions"
)
WIDGET = Kind(group="contract.example", version="v1", kind="Widget", plural="widgets")


def schema_of(kind: Kind) -> Schema:
    schema = builtin_schema(kind)
    assert schema is not None
    return schema


def widgets(**fields: Any) -> Schema:
    """Custom resources whose spec has these fields."""
    return read_definition({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}})
