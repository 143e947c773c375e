"""What docs/config.md and docs/embedded.md claim: their flags, values and annotations exist, and none is missing."""

import re
from collections.abc import Iterator
from typing import Any

import click
import pytest
import yaml

from tessera.admission.guarding import guarded_annotations
from tessera.apps.cli import COMMANDS
from tessera.apps.run import COMPONENTS
from tessera.cli.group import make_group
from tessera.model.annotations import keys
from tessera.vendors.loading import load_catalogue
from tests.chart.charts import read as read_chart
from tests.examples.guides import section
from tests.repository.files import ROOT
from tests.repository.pages import PAGES, QUOTED, quotes_of

PAGE = (ROOT / "docs/config.md").read_text()
DOCUMENTED = [*(f"run {name}" for name in COMPONENTS), "scheduler config"]


def options_of(path: str) -> dict[str, click.Option]:
    """Every flag of a command, `--no-…` included, and what click knows of it."""
    found: click.Command | None = make_group(COMMANDS)
    for name in path.split():
        assert isinstance(found, click.Group)
        found = found.get_command(click.Context(found), name)
    assert found
    options = [option for option in found.params if isinstance(option, click.Option)]
    return {flag: option for option in options for flag in [*option.opts, *option.secondary_opts]}


def rows_of(table: str) -> dict[str, str]:
    """The default of each name in the first column of a table; a row may have several."""
    rows = re.findall(r"^\| (`[^|]+`) \| ([^|]*)\|", table, re.MULTILINE)
    return {name: default.strip() for names, default in rows for name in QUOTED.findall(names)}


@pytest.mark.parametrize("path", DOCUMENTED)
def test_the_flags_of_a_command_are_those_of_the_page(path: str):
    told, there = rows_of(section(PAGE, f"`tessera {path}`")), options_of(path)
    assert set(told) == set(there)
    plain = {flag: default.strip("`") for flag, default in told.items() if re.fullmatch(r"`[^`]+`", default)}
    assert plain == {flag: str(there[flag].default) for flag in plain}


def test_the_options_of_up_are_those_of_its_page():
    told = re.findall(r"^\| `(--[a-z-]+)", (ROOT / "docs/embedded.md").read_text(), re.MULTILINE)
    assert sorted(told) == sorted(flag for flag, option in options_of("up").items() if not option.hidden)


def leaves(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Values by their dotted names; requests and limits are one."""
    for name, value in values.items():
        if isinstance(value, dict) and value and name != "resources":
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def test_the_values_of_the_chart_are_those_of_the_page():
    told = rows_of(section(PAGE, "For a whole cluster: values of the chart"))
    there = dict(leaves(read_chart("values.yaml")))
    assert set(told) == set(there)
    plain = {name: default.strip("`") for name, default in told.items() if default}
    assert {name: yaml.safe_load(text) for name, text in plain.items()} == {name: there[name] for name in plain}


def test_every_value_of_the_chart_that_some_page_names_exists():
    """But for what is called like one: an entry of the webhook, which lies in our own domain."""
    values = read_chart("values.yaml")
    called = re.compile(rf"((?:{'|'.join(values)})(?:\.\w+)+)(?:=.*)?")
    named = {found[1] for page in PAGES for quote in quotes_of(page) if (found := called.fullmatch(quote))}
    assert len(named) > len(values)
    assert {name for name in named if not name.endswith(".gpu.scheduling")} <= set(dict(leaves(values)))


def test_what_the_page_lets_users_write_is_not_refused_as_the_scheduler_s():
    names = QUOTED.findall(section(PAGE, "For one pod"))
    written = {name for name in names if re.match(r"(hami\.io|nvidia\.com|gpu\.scheduling)/", name)}
    assert len(written) >= 13
    assert written & set(guarded_annotations(load_catalogue())) == {keys.PIN}, "a pin alone may be there at creation"
