"""The node of the embedded engine: pods as local processes, told to the API as a kubelet tells it.

A pod document comes in, already bound; its containers start as processes of this machine, and what a kubelet would
report comes out. Nothing is pulled and nothing is emulated: a container's root file system is this machine's own, with
the pod's volumes shown in it where the kernel permits.

Each container has a small supervisor process of its own, the shim. It lives exactly as long as its container and dies
with the engine, so that no crash leaves a process behind. `shim`, `namespaces`, `log_files` and `kernel` run in that
process and import the standard library only. Everything else runs in the engine; `node_loop` alone knows the API.
"""
