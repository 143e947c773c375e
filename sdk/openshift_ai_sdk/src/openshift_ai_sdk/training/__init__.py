"""Distributed training, described in Python and checked before it reaches a cluster."""

from .asynchronous import AsyncMPIJob
from .errors import NoSuchWorker
from .evidence import Explanation
from .mpijob import MPIJob
from .ranks import Ranks, RanksNotEverywhere
from .resources import ResourceRequirements

__all__ = [
    "AsyncMPIJob",
    "Explanation",
    "MPIJob",
    "NoSuchWorker",
    "Ranks",
    "RanksNotEverywhere",
    "ResourceRequirements",
]
