"""Tessera shares, schedules, enforces and drives accelerators."""

__version__ = "0.1.0"
