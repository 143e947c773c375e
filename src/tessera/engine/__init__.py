"""Decisions about devices: may this pod run there, and how good would it be?

Pure: no clock, no I/O, no logging, no Kubernetes objects. Time and state come in as arguments, refusals go out as data.
What talks to the API server belongs in `kube`; what a vendor calls things belongs in `vendors`.
"""
