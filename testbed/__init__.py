"""A real Kubernetes for tests, built from Go modules and gone without a trace when it stops.

Each cluster is one `machine`: network, mount, process and host-name namespaces of its own, so that clusters run side by
side, every component uses its usual ports and paths, and one dying process takes the whole cluster with it. Nothing in
the product imports this package. Needs Linux, root and a Go toolchain; `requirements` says what is missing.
"""
