"""The chart's files agree with the code and with each other."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from tessera import __version__
from tessera.apps.manifest_files import OTHER_SCHEDULERS, chart_files
from tessera.apps.manifests import command
from tessera.model.definitions import load_definitions
from tessera.vendors.loading import load_catalogue
from tests.chart.charts import CHART, Document, read

FILES = chart_files(load_catalogue())


@pytest.mark.parametrize("name", FILES)
def test_what_follows_from_the_catalogue_is_up_to_date(name: str):
    assert (CHART / "files" / name).read_text() == FILES[name], "run `make chart`"


def test_make_chart_writes_them(tmp_path: Path):
    assert CliRunner().invoke(command, ["--chart", str(tmp_path)]).exit_code == 0
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {str(path.relative_to(tmp_path)): path.read_text() for path in written} == FILES


def test_the_objects_can_be_had_without_helm_and_without_anything_to_fill_in():
    volcano = "system:serviceaccount:volcano-system:volcano"
    printed = CliRunner().invoke(command, ["--other-scheduler", volcano]).stdout
    names = [(document["kind"], document["metadata"]["name"]) for document in yaml.safe_load_all(printed)]
    assert names == [
        ("MutatingWebhookConfiguration", "hami-webhook"),
        ("ValidatingAdmissionPolicy", "hami-allocations"),
        ("ValidatingAdmissionPolicyBinding", "hami-allocations"),
        ("ValidatingAdmissionPolicy", "hami-agents"),
        ("ValidatingAdmissionPolicyBinding", "hami-agents"),
    ]
    assert volcano in printed
    assert OTHER_SCHEDULERS not in printed


def test_the_chart_installs_the_version_that_it_lies_beside():
    chart = read("Chart.yaml")
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


def test_every_value_has_a_comment_above_it():
    lines = (CHART / "values.yaml").read_text().splitlines()
    named = [number for number, line in enumerate(lines) if re.match(r" *\w+:", line) and "requests:" not in line]
    assert len(named) > 40
    assert [lines[number] for number in named if not lines[number - 1].lstrip().startswith("#")] == []


def test_the_schema_knows_every_value_and_no_other():
    schema = read("values.schema.json")
    known = set(leaves_of_schema(schema, schema, ()))
    valued = set(leaves(read("values.yaml"), ()))
    optional = {path for path in known if path[0] == "global" or path[-1] in ("limits", "claims")}
    optional |= {("certManager", "issuerRef", field) for field in ("kind", "name", "group")}
    assert valued - known == {("certManager", "issuerRef")}
    assert known - valued == optional


def leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if not value or not isinstance(value, dict) or path[-1:] == ("requests",):
        yield path
        return
    for name, below in value.items():
        yield from leaves(below, (*path, name))


def leaves_of_schema(part: Document, schema: Document, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if "$ref" in part:
        part = schema["$defs"][part["$ref"].rpartition("/")[2]]
    if "properties" not in part:
        yield path
        return
    assert part["additionalProperties"] is False, path
    for name, below in part["properties"].items():
        yield from leaves_of_schema(below, schema, (*path, name))


def test_the_chart_has_every_definition_and_no_other():
    in_chart = {path.name: yaml.safe_load(path.read_text()) for path in (CHART / "files/crds").iterdir()}
    assert sorted(one["metadata"]["name"] for one in in_chart.values()) == sorted(
        one["metadata"]["name"] for one in load_definitions()
    )


@pytest.mark.parametrize(
    ("name", "group", "served"),
    [
        ("gpuclaims", "gpu.scheduling", "v1"),
        ("gpugangs", "gpu.scheduling", "v1"),
        ("gpunodestatuses", "gpu.scheduling", "v1"),
        ("computes", "compute.kpu.dev", "v1alpha1"),
    ],
)
def test_definitions_serve_one_version_with_a_status_of_its_own(name: str, group: str, served: str):
    spec = read(f"files/crds/{name}.yaml")["spec"]
    (version,) = spec["versions"]
    assert (spec["group"], version["name"], version["subresources"]) == (group, served, {"status": {}})
