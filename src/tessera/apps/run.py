"""`tessera run`: the components as processes."""

from tessera.cli.group import Entry, LazyGroup

COMPONENTS = {
    "agent": Entry("tessera.apps.agent", "Tell the cluster this node's cards, and give them to containers."),
    "extender": Entry("tessera.apps.extender", "Answer kube-scheduler: filter, prioritize, bind."),
}

command = LazyGroup("run", COMPONENTS, help="Run a component until it is told to stop.")
