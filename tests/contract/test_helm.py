"""helm with a chart like ours: a definition, and what uses it."""

import json

import pytest
import yaml

from tests.contract.custom_resources import DEFINITIONS, definition
from tests.contract.objects import config_map, deployment

pytestmark = pytest.mark.contract(area="helm", needed_by="helm, GpuClaim")


@pytest.fixture
def helm(engine, namespace):
    """helm as the administrator, in the test's namespace."""
    return engine.helm.within(namespace)


@pytest.fixture
def chart(api, tmp_path, unique):
    """A chart with a custom resource definition, a Deployment without pods, and a ConfigMap of one value."""
    group = f"{unique}.example"
    files = {
        "Chart.yaml": {"apiVersion": "v2", "name": "demo", "version": "0.1.0"},
        "values.yaml": {"colour": "red"},
        "crds/widgets.yaml": definition(group),
        "templates/settings.yaml": config_map("{{ .Release.Name }}", {"colour": "{{ .Values.colour }}"}),
        "templates/web.yaml": deployment("web", replicas=0),
        "templates/widget.yaml": {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {}},
    }
    for name, content in files.items():
        path = tmp_path / "demo" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(content))
    yield str(tmp_path / "demo")
    api.collection(DEFINITIONS).delete(f"widgets.{group}")


@pytest.mark.contract(promise="`install` makes the definitions first, then everything of the chart, and waits for it")
def test_a_chart_is_installed(helm, chart, config_maps, deployments):
    installed = helm("install", "demo", chart, "--wait", "--timeout=60s")
    assert "STATUS: deployed" in installed
    assert config_maps.get("demo")["data"] == {"colour": "red"}
    assert deployments.exists("web")


@pytest.mark.contract(promise="`upgrade`, `get values`, `list` and `uninstall` of an installed chart")
def test_a_chart_is_upgraded_and_uninstalled(helm, chart, config_maps, deployments):
    helm("install", "demo", chart)
    helm("upgrade", "demo", chart, "--set", "colour=blue", "--wait", "--timeout=60s")
    assert config_maps.get("demo")["data"] == {"colour": "blue"}
    assert json.loads(helm("get", "values", "demo", "-o", "json")) == {"colour": "blue"}
    assert [release["revision"] for release in json.loads(helm("list", "-o", "json"))] == ["2"]
    helm("uninstall", "demo", "--wait")
    assert not config_maps.exists("demo")
    assert not deployments.exists("web")
