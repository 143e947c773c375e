"""The controllers: what makes pods of larger things, counts them, and clears up after whatever is deleted.

Here lives what a cluster's kube-controller-manager does, as far as docs/engines.md promises it. Each is a reconciler
over `kube`, like any component: it could run against any API server, and its tests run it against a real one. What is
to be done is decided by pure functions from objects to writes; a thin shell reads caches and carries the writes out.

All are level-based: whatever was missed, repeated or cut off half-way is found and finished by looking again. What was
created and is not yet in the cache is remembered (`expectations`) or has a name that can be taken only once, so that a
slow watch never makes two of anything. `running` puts them together.
"""
