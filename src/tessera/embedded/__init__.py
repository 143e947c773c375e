"""The embedded engine: the Kubernetes API on one machine, with nothing installed.

An API server over one SQLite file, the controllers that make pods of larger things, and a runtime that starts pods as
local processes. Its surface is the contract of docs/engines.md and grows by that table alone. Components do not know
that it is not a cluster: they reach it as they reach one, through `kube`.
"""
