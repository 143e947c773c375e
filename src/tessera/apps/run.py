"""`tessera run`: the components as processes."""

from tessera.cli.group import Entry, LazyGroup

COMPONENTS = {
    "agent": Entry("tessera.apps.agent", "Tell the cluster this node's cards, and give them to containers."),
    "device-plugin": Entry("tessera.apps.device_plugin", "Give this node's cards to containers, without metrics."),
    "exporter": Entry("tessera.apps.exporter", "Show this node's cards and who holds them, and change nothing."),
    "extender": Entry("tessera.apps.extender", "Answer kube-scheduler: filter, prioritize, bind."),
    "operator": Entry(
        "tessera.apps.operator", "Tell what became of GpuClaims and GpuGangs, and make what Computes need."
    ),
    "webhook": Entry(
        "tessera.apps.webhook", "Answer the API server: complete pods that ask for cards, or refuse them."
    ),
}

command = LazyGroup("run", COMPONENTS, help="Run a component until it is told to stop.")
