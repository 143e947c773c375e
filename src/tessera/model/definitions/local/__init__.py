"""Kinds that somebody else defines for clusters. They are installed on our own engine only, where nobody else does."""
