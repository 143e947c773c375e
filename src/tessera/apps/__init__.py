"""Composition roots, one per process: the only place that knows every component."""
