"""`tessera run`: the components as processes."""

from tessera.cli.group import Entry, LazyGroup

COMPONENTS = {"extender": Entry("tessera.apps.extender", "Answer kube-scheduler: filter, prioritize, bind.")}

command = LazyGroup("run", COMPONENTS, help="Run a component until it is told to stop.")
