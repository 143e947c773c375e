"""Distributed training, described in Python and checked before it reaches a cluster."""

from .resources import ResourceRequirements

__all__ = ["ResourceRequirements"]
