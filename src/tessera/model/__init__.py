"""Immutable data and the formats it travels in.

Pure: no I/O, no clock, no Kubernetes client. Here live what a pod asks for, what a node has, what was given to whom,
why something was refused, and the codecs for every annotation. What decides belongs in `engine`; what a vendor calls
its resources belongs in `vendors`.
"""
