"""The process behind the `tessera` command."""

from tessera.cli.group import Entry, make_group, run

COMMANDS = {
    "certificates": Entry("tessera.apps.certificates", "Make certificates for our own processes."),
    "completion": Entry("tessera.cli.completion", "Print what makes a shell complete commands and options."),
    "down": Entry("tessera.apps.down", "Stop the cluster on this machine."),
    "doctor": Entry("tessera.apps.doctor", "Check a cluster and say what to do."),
    "manifests": Entry("tessera.apps.manifests", "Print the webhook's configuration and the admission policies."),
    "nodes": Entry("tessera.apps.nodes", "Show every node with its cards, and who is on them."),
    "pods": Entry("tessera.apps.pods", "Show the pods that ask for cards, what they got, why they wait."),
    "run": Entry("tessera.apps.run", "Run a component until it is told to stop."),
    "scheduler": Entry("tessera.apps.scheduler", "Configure the stock kube-scheduler for Tessera."),
    "simulate": Entry(
        "tessera.cli.simulate", "Replay a trace, a cluster dump or a made-up cluster through the engine."
    ),
    "up": Entry("tessera.apps.up", "Start a cluster on this machine, in one process."),
    "version": Entry("tessera.apps.version", "Print the versions of this program and of the cluster."),
}


def main() -> None:
    run(make_group(COMMANDS))


if __name__ == "__main__":
    main()
