"""What each kind demands: its names, its defaults, its rules, its columns; and the kinds that definitions add.

Pure: documents in, documents and causes out. Time, chance and addresses come in as arguments. What many requests have
in common belongs in `serving`, what depends on other objects in `admitting`, what types say in `schemas`.
"""

from tessera.embedded.resources.registry import Registry, Served
from tessera.embedded.resources.strategy import Strategy

__all__ = ["Registry", "Served", "Strategy"]
