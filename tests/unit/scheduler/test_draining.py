"""The cards of a pod that was deleted by force stay taken until its node's agent says that its containers are gone."""

from typing import Any

import msgspec
import pytest

from tessera.engine.ledger import State
from tessera.kube.caching import Change
from tessera.kube.objects import ObjectKey
from tessera.model.annotations.keys import AGENT_NODE, ENDED
from tessera.scheduler.draining import AgentLease, Draining
from tessera.scheduler.world import World
from tests.unit.scheduler.cluster import a_pod, a_world, see, see_deleted

RUNNING = {"state": {"running": {"startedAt": "2026-11-15T10:00:09Z"}}}
ENDED_WELL = {"state": {"terminated": {"exitCode": 0}}}
NOT_STARTED = {"state": {"waiting": {"reason": "ContainerCreating"}}}


class Scene:
    """A world with one node, and who follows its agent."""

    def __init__(self) -> None:
        self.world: World = a_world(a="1xA100-SXM4-80GB")
        self.nodes = {"a"}
        self.draining = Draining(self.world, self.nodes.__contains__)
        self.world.lingers = self.draining.lingers
        self.freed = 0
        self.lease: AgentLease | None = None

    def hear_agent(self, *ended: str) -> None:
        annotations = {AGENT_NODE: "a", **({ENDED: ",".join(ended)} if ended else {})}
        document = {"metadata": {"name": "tessera-agent-a", "namespace": "kube-system", "annotations": annotations}}
        self._tell(msgspec.convert(document, AgentLease))

    def lose_lease(self) -> None:
        self._tell(None)

    def _tell(self, lease: AgentLease | None) -> None:
        change = Change(ObjectKey("kube-system", "tessera-agent-a"), self.lease, lease)
        self.lease = lease
        self.draining.agent_changed(change)

    def force_delete(self, *containers: dict[str, Any], init: tuple[dict[str, Any], ...] = ()) -> None:
        uuid = self.world.ledger.fleet.uuids[0][0]
        pod = a_pod("old", memory=50_000, nodeName="a")
        pod["metadata"]["annotations"] = {"hami.io/vgpu-devices-allocated": f"{uuid},NVIDIA,50000,0:;"}
        pod["status"] = {"containerStatuses": list(containers), "initContainerStatuses": list(init)}
        see(self.world, pod)
        self.world.freed = self._count
        see_deleted(self.world, pod)

    def _count(self) -> None:
        self.freed += 1

    @property
    def is_draining(self) -> bool:
        held = self.world.ledger.holding("uid-old")
        return held is not None and held.state is State.DRAINING

    @property
    def is_free(self) -> bool:
        return self.world.ledger.holding("uid-old") is None


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_cards_stay_taken_until_the_agent_says_that_the_containers_are_gone(scene: Scene):
    scene.hear_agent()
    scene.force_delete(RUNNING)
    assert scene.is_draining
    assert scene.freed == 0
    scene.hear_agent("uid-other")
    assert scene.is_draining, "an agent that lives and says nothing of the pod frees nothing"
    scene.hear_agent("uid-other", "uid-old")
    assert scene.is_free
    assert scene.freed == 1, "whoever waits is told of the room"


def test_a_sidecar_that_runs_counts_too(scene: Scene):
    scene.hear_agent()
    scene.force_delete(ENDED_WELL, init=(RUNNING,))
    assert scene.is_draining


@pytest.mark.parametrize("containers", [(ENDED_WELL,), (NOT_STARTED,), ()])
def test_a_pod_none_of_whose_containers_run_drains_nothing(scene: Scene, containers: tuple[dict[str, Any], ...]):
    scene.hear_agent()
    scene.force_delete(*containers)
    assert scene.is_free


def test_where_no_agent_is_there_is_nobody_to_wait_for(scene: Scene):
    scene.force_delete(RUNNING)
    assert scene.is_free


def test_an_end_that_was_told_before_the_pod_was_gone_counts(scene: Scene):
    scene.hear_agent("uid-old")
    scene.force_delete(RUNNING)
    assert scene.is_free


def test_a_node_that_is_gone_frees_what_drained_on_it(scene: Scene):
    scene.hear_agent()
    scene.force_delete(RUNNING)
    scene.draining.node_changed(Change(ObjectKey("", "a"), None, None))
    assert scene.is_free


def test_on_a_node_that_is_gone_nothing_drains(scene: Scene):
    scene.hear_agent()
    scene.nodes.clear()
    scene.force_delete(RUNNING)
    assert scene.is_free


def test_a_lease_that_was_deleted_frees_what_drained_there(scene: Scene):
    scene.hear_agent()
    scene.force_delete(RUNNING)
    scene.lose_lease()
    assert scene.is_free


def test_a_pod_without_cards_drains_nothing(scene: Scene):
    scene.hear_agent()
    plain = a_pod("plain", nodeName="a")
    plain["spec"]["containers"][0]["resources"] = {}
    plain["status"] = {"containerStatuses": [RUNNING]}
    see(scene.world, plain)
    see_deleted(scene.world, plain)
    assert scene.world.ledger.holding("uid-plain") is None
