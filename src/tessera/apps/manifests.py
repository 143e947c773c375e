"""`tessera manifests`: the objects that follow from the vendor catalogue, for the Helm chart and for hands."""

from pathlib import Path

import click


@click.command("manifests")
@click.option(
    "--other-scheduler", "others", multiple=True, help="A user who may write allocations too, such as Volcano."
)
@click.option("--chart", type=click.Path(path_type=Path), help="Write the files of the Helm chart to this directory.")
def command(others: tuple[str, ...], chart: Path | None) -> None:
    """Print the webhook's configuration and the admission policies as YAML."""
    from tessera.apps.manifest_files import admission_documents, chart_files
    from tessera.apps.plain_yaml import as_yaml
    from tessera.vendors.loading import load_catalogue

    if chart is None:
        click.echo(as_yaml(*admission_documents(load_catalogue(), others)), nl=False)
        return
    for name, text in chart_files(load_catalogue()).items():
        (chart / name).parent.mkdir(exist_ok=True)
        (chart / name).write_text(text)
