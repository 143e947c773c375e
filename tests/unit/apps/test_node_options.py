"""What a node's processes are told: by default as the settings have it, and each in one sentence if it cannot be."""

import asyncio
from pathlib import Path
from typing import Any

import click
import pytest

from tessera.apps import agent, device_plugin, exporter, extender
from tessera.apps.addresses import read_health_address
from tessera.apps.node_options import read_settings, with_figures, with_kubelet
from tessera.apps.node_processes import run_agent
from tessera.engine.policies import DEFAULT
from tessera.errors import InvalidInventory, InvalidRequest
from tessera.node.settings import NodeSettings


def flags_of(command: click.Command, *arguments: str) -> Any:
    """As click gives them to the command."""
    return command.make_context(command.name, [*arguments]).params


def test_without_flags_the_settings_are_their_own_defaults():
    flags = flags_of(agent.command, "--node=gpu-1")
    assert with_figures(with_kubelet(read_settings(flags), flags), flags) == NodeSettings(node="gpu-1")


def test_without_flags_the_extender_has_the_policies_of_the_engine():
    flags = flags_of(extender.command)
    assert (flags["node_policy"], flags["card_policy"]) == (DEFAULT.node, ",".join(DEFAULT.cards))


def test_an_agent_is_told_all_that_the_other_two_are_and_where_its_health_is_asked_by_metrics():
    of_agent, of_plugin, of_exporter = (
        {option.name for option in one.command.params} for one in (agent, device_plugin, exporter)
    )
    assert of_plugin | of_exporter == of_agent | {"health"}


def test_two_descriptions_of_simulated_cards_are_one_too_many():
    flags = flags_of(exporter.command, "--simulate=1xA100-SXM4-80GB", "--simulate-file=cards.toml")
    with pytest.raises(InvalidRequest, match="--simulate and --simulate-file are both given"):
        read_settings(flags)


def test_cards_that_nobody_makes_are_refused_before_anything_is_put_on_the_node(tmp_path: Path):
    flags = flags_of(agent.command, "--node=gpu-1", "--simulate=2xFOO", f"--hook-path={tmp_path}")
    with pytest.raises(InvalidInventory, match='"FOO"'):
        asyncio.run(run_agent(flags))
    assert list(tmp_path.iterdir()) == []


def test_health_is_always_asked_somewhere():
    with pytest.raises(InvalidRequest, match="--health is empty, expected an address"):
        read_health_address("--health", "")
