"""The doctor: each thing that can be wrong is found, and a sound cluster is told to be sound."""

import base64
from typing import Any

import msgspec
import pytest

from tessera.kube.objects import ObjectMeta
from tessera.views.checks import examine, has_problem
from tessera.views.documents import ViewedPod
from tessera.views.findings import Finding, Level
from tessera.views.installed import DEFINITIONS, ClientConfig, KeptData, Webhook, WebhookConfiguration
from tessera.views.nodes import view_nodes
from tessera.views.observing import Observed, leaders_among
from tessera.views.pods import view_pods
from tests.unit.views.making import (
    CATALOGUE,
    HANDSHAKE,
    NOW,
    a_node,
    a_pod,
    ago,
    an_agent_lease,
    held,
    unscheduled,
    uuids_of,
)

INVENTORY = "tessera.io/inventory"
CONFIGURATION = """
profiles: [{schedulerName: hami-scheduler}]
extenders: [{urlPrefix: "https://127.0.0.1:8443", filterVerb: filter, bindVerb: bind}]
"""


def certificate(body: str) -> str:
    return base64.b64encode(f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n".encode()).decode()


def component(name: str, *, ready: bool = True, node: str = "cp", beside: str = "kube-scheduler") -> ViewedPod:
    ready_condition = {"type": "Ready", "status": "True" if ready else "False"}
    labels = {"labels": {"app.kubernetes.io/name": name}}
    containers = {"containers": [{"name": "scheduler"}, {"name": beside}]}
    return a_pod(name, limits={}, node=node, metadata=labels, conditions=[ready_condition], spec=containers)


def webhook(body: str = "ours", **changes: Any) -> WebhookConfiguration:
    config = ClientConfig(ca_bundle=certificate(body) if body else None)
    hooks = tuple(
        msgspec.structs.replace(Webhook(name=name, client_config=config, failure_policy="Fail"), **changes)
        for name in ("vgpu.hami.io", "claims.gpu.scheduling")
    )
    return WebhookConfiguration(metadata=ObjectMeta(name="hami-webhook"), webhooks=hooks)


def kept(**data: str) -> KeptData:
    return KeptData(metadata=ObjectMeta(name="kept"), data={key.replace("_", "."): it for key, it in data.items()})


def nodes_of(*nodes: Any, leases: Any = ()) -> Any:
    return view_nodes(nodes, held(), leases, CATALOGUE, NOW)


def said_of_limits(status: str, message: str = "") -> dict[str, Any]:
    ready = {"type": "Ready", "status": "True"}
    return {"conditions": [ready, {"type": "TesseraLimitsHeld", "status": status, "message": message}]}


def sound(**changes: Any) -> Observed:
    seen = Observed(
        version="v1.36.3",
        clock_ahead_s=0.2,
        nodes=nodes_of(a_node()),
        pods=view_pods(held(a_pod(node="gpu-a", cards={"GPU-0": 1})), (), (), CATALOGUE),
        components=(component("hami-scheduler"), component("hami-device-plugin", node="gpu-a")),
        leaders={"hami-scheduler": "cp_1"},
        webhooks=(webhook(),),
        secrets=(kept(ca_crt=certificate("ours")),),
        configurations=(kept(config=CONFIGURATION),),
        definitions=DEFINITIONS,
    )
    return msgspec.structs.replace(seen, **changes)


def amiss(seen: Observed) -> list[Finding]:
    return [finding for finding in examine(seen) if finding.level is not Level.OK]


def test_a_sound_cluster_has_nothing_but_good_findings():
    findings = examine(sound())

    assert [finding.level for finding in findings] == [Level.OK] * len(findings)
    assert [finding.check for finding in findings] == [
        *("version", "clock", "rights", "scheduler", "kube-scheduler"),
        *("webhook", "webhook", "agents", "definitions", "nodes", "pods"),
    ]
    assert not has_problem(findings)


WARN, BAD = Level.WARNING, Level.PROBLEM


@pytest.mark.parametrize(
    ("changes", "check", "level", "words"),
    [
        ({"version": "v1.29.4"}, "version", BAD, "Kubernetes is v1.29.4"),
        ({"version": "strange"}, "version", WARN, 'calls its version "strange"'),
        ({"clock_ahead_s": 90.0}, "clock", WARN, "90 s ahead of"),
        ({"clock_ahead_s": -90.0}, "clock", WARN, "90 s behind"),
        ({"clock_ahead_s": None}, "clock", WARN, "were not compared"),
        ({"secrets": None, "unread": ("secrets may not be listed",)}, "rights", WARN, "secrets may not be listed"),
        ({"nodes": None, "unread": ("nodes may not be listed",)}, "rights", BAD, "nodes may not be listed"),
        ({"components": (), "leaders": {}}, "scheduler", BAD, "no pod hami-scheduler"),
        (
            {"components": (component("hami-scheduler", ready=False),)},
            "scheduler",
            BAD,
            "none of 1 pods hami-scheduler is ready",
        ),
        (
            {"components": (component("hami-scheduler"), component("hami-scheduler", ready=False))},
            "scheduler",
            WARN,
            "1 of 2 pods hami-scheduler are ready",
        ),
        ({"leaders": {"hami-scheduler": ""}}, "scheduler", BAD, "none leads"),
        ({"configurations": ()}, "kube-scheduler", WARN, "is not to be seen"),
        ({"configurations": (kept(config="profiles: []"),)}, "kube-scheduler", BAD, "no profile hami-scheduler"),
        ({"configurations": (kept(config="a: [b"),)}, "kube-scheduler", BAD, "no profile hami-scheduler"),
        ({"configurations": (kept(config="text"),)}, "kube-scheduler", BAD, "no profile hami-scheduler"),
        ({"webhooks": ()}, "webhook", BAD, "no webhook claims.gpu.scheduling is configured"),
        ({"webhooks": (webhook(""),)}, "webhook", BAD, "has no authority"),
        ({"webhooks": (webhook("theirs"),)}, "webhook", BAD, "trusts another authority"),
        ({"webhooks": (webhook(failure_policy="Ignore"),)}, "webhook", WARN, "is Ignore"),
        (
            {"components": (component("hami-scheduler"), component("hami-device-plugin", ready=False, node="gpu-a"))},
            "agents",
            WARN,
            "1 of 1 pods hami-device-plugin are not ready: on gpu-a",
        ),
        (
            {"components": (component("hami-scheduler"),), "nodes": nodes_of(a_node(annotations={INVENTORY: ""}))[:0]},
            "agents",
            BAD,
            "nobody reports cards",
        ),
        ({"definitions": ()}, "definitions", WARN, "gpuclaims.gpu.scheduling"),
        ({"nodes": nodes_of(a_node(labels={"gpu": "off"}))}, "nodes", WARN, "no label gpu=on"),
        (
            {"nodes": nodes_of(a_node(annotations={HANDSHAKE: f"Reported {ago(minutes=9)}"}))},
            "nodes",
            BAD,
            "older than five minutes: gpu-a",
        ),
        ({"nodes": nodes_of(a_node(annotations={HANDSHAKE: ""}))}, "nodes", WARN, "no handshake: gpu-a"),
        (
            {"nodes": nodes_of(a_node(), leases=[an_agent_lease("gpu-a", minutes=5)])},
            "nodes",
            BAD,
            "no longer renew their lease: gpu-a",
        ),
        (
            {"nodes": nodes_of(a_node(status={"conditions": [{"type": "Ready", "status": "Unknown"}]}))},
            "nodes",
            BAD,
            "not ready: gpu-a",
        ),
        (
            {"nodes": nodes_of(a_node(annotations={"hami.io/device-cordon": uuids_of(a_node())[0]}))},
            "cards",
            WARN,
            "1 cards are cordoned: gpu-a #0",
        ),
        (
            {"nodes": nodes_of(a_node(status=said_of_limits("False", "libtessera.so is not on the node")))},
            "limits",
            BAD,
            "1 nodes do not keep containers within their limits: gpu-a; libtessera.so is not on the node",
        ),
        (
            {"pods": view_pods(held(a_pod(conditions=unscheduled("0/1 nodes"))), (), (), CATALOGUE)},
            "pods",
            WARN,
            "1 of 1 pods that want cards wait; default/train: 0/1 nodes",
        ),
    ],
)
def test_what_is_amiss_is_found_with_its_level(changes: dict[str, Any], check: str, level: Level, words: str):
    found = [finding for finding in amiss(sound(**changes)) if finding.check == check]

    assert found, [*map(str, amiss(sound(**changes)))]
    assert found[0].level is level
    assert words in found[0].sentence
    assert has_problem(examine(sound(**changes))) is (level is BAD)


def test_limits_that_hold_again_are_no_trouble():
    assert not amiss(sound(nodes=nodes_of(a_node(status=said_of_limits("True")))))


def test_a_labelled_node_without_cards_is_a_problem():
    bare = a_node("bare", annotations={INVENTORY: "", "hami.io/node-nvidia-register": ""})
    (finding,) = amiss(sound(nodes=nodes_of(a_node(), bare)))

    assert finding.sentence == "1 of 2 nodes with label gpu=on report no cards: bare"
    assert finding.level is Level.PROBLEM
    assert finding.advice


def test_where_nothing_of_ours_is_installed_that_is_said_once():
    empty = Observed(
        version="v1.36.3",
        clock_ahead_s=0.0,
        nodes=(),
        pods=(),
        components=(),
        leaders={},
        webhooks=(),
        secrets=(),
        configurations=(),
        definitions=(),
    )
    findings = examine(empty)

    assert [finding.check for finding in findings] == ["version", "clock", "rights", "installation", "nodes", "pods"]
    assert [finding.sentence for finding in findings if finding.level is Level.PROBLEM] == [
        "nothing of Tessera is installed in this cluster"
    ]


def test_a_scheduler_outside_of_the_cluster_is_known_by_its_lease():
    outside = sound(components=(component("hami-device-plugin", node="gpu-a"),), leaders={"tessera-scheduler": "host"})

    assert [finding.level for finding in examine(outside) if finding.check == "scheduler"] == [Level.OK]


def test_a_scheduler_that_decides_by_itself_needs_neither_lease_nor_kube_scheduler():
    alone = component("hami-scheduler", beside="api-server")
    agent = component("hami-device-plugin", node="gpu-a")

    assert amiss(sound(components=(alone, agent), leaders={}, configurations=())) == []


def test_without_rights_nothing_is_claimed_about_what_was_not_seen():
    findings = examine(Observed(version="v1.36.3", unread=("nodes may not be listed", "pods may not be listed")))

    assert [finding.check for finding in findings] == ["version", "clock", "rights"]
    assert has_problem(findings)


def test_who_leads_is_read_from_leases_that_still_stand():
    standing = an_agent_lease("x", seconds=3)
    named = msgspec.structs.replace(
        standing, metadata=msgspec.structs.replace(standing.metadata, name="hami-scheduler")
    )
    lapsed = an_agent_lease("y", minutes=3)
    old = msgspec.structs.replace(lapsed, metadata=msgspec.structs.replace(lapsed.metadata, name="tessera-scheduler"))

    assert leaders_among([named, old, standing], NOW) == {"hami-scheduler": "x", "tessera-scheduler": ""}
