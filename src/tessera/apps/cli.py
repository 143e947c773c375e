"""The process behind the `tessera` command."""

from tessera.cli.group import Entry, make_group, run

COMMANDS = {
    "certificates": Entry("tessera.apps.certificates", "Make certificates for our own processes."),
    "manifests": Entry("tessera.apps.manifests", "Print the webhook's configuration and the admission policies."),
    "run": Entry("tessera.apps.run", "Run a component until it is told to stop."),
    "scheduler": Entry("tessera.apps.scheduler", "Configure the stock kube-scheduler for Tessera."),
    "simulate": Entry(
        "tessera.cli.simulate", "Replay a trace, a cluster dump or a made-up cluster through the engine."
    ),
}


def main() -> None:
    run(make_group(COMMANDS))


if __name__ == "__main__":
    main()
