"""Pods as a node keeps them: also with the variables that their containers set, which the scheduler has no use for."""

import msgspec

from tessera.kube import pods
from tessera.kube.kinds import PODS


class Variable(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """`value` is None where it comes from elsewhere, and is not known to us."""

    name: str
    value: str | None = None


class Container(pods.Container, frozen=True, kw_only=True, gc=False):
    env: tuple[Variable, ...] | None = None
    termination_message_path: str | None = None

    def variable(self, name: str) -> str | None:
        """The last of several, as in Kubernetes."""
        told = [variable.value for variable in self.env or () if name and variable.name == name]
        return told[-1] if told else None


class Spec(pods.Spec, frozen=True, kw_only=True, gc=False):
    containers: tuple[Container, ...]
    init_containers: tuple[Container, ...] | None = None


class Pod(pods.Pod, frozen=True, kw_only=True, gc=False):
    spec: Spec

    @property
    def all_containers(self) -> tuple[Container, ...]:
        """In the order of allocations, init containers first."""
        return (*(self.spec.init_containers or ()), *self.spec.containers)


NODE_PODS = PODS.decoded_as(Pod)
