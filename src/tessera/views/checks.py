"""The doctor's judgement: from what was seen of a cluster to a finding for each thing that was looked at. Pure."""

import re
from collections.abc import Callable, Iterator
from typing import Any, cast

import yaml

from tessera.views.documents import ViewedPod
from tessera.views.findings import Finding, Level, named, ok, problem, warning
from tessera.views.installed import AGENT, DEFINITIONS, NAME_LABEL, NAMESPACE, SCHEDULER
from tessera.views.node_checks import check_nodes
from tessera.views.observing import Observed
from tessera.views.webhook_checks import check_webhook, our_webhooks

OLDEST_MINOR = 30
MOST_CLOCK_S = 5.0
KUBE_SCHEDULER = "kube-scheduler"
INSTALL = "install it: helm install gpu-scheduler charts/gpu-scheduler"
_VERSION = re.compile(r"v?(\d+)\.(\d+)")

Check = Callable[[Observed], Iterator[Finding]]


def examine(seen: Observed) -> tuple[Finding, ...]:
    """Where nothing of ours is installed that is said once, and its parts are not asked for one by one."""
    ours = (check_scheduler, check_configuration, check_webhook, check_agents, check_definitions)
    parts = ours if is_installed(seen) else (_say_not_installed,)
    checks: tuple[Check, ...] = (check_version, check_clock, check_rights, *parts, check_nodes, check_pods)
    return tuple(finding for check in checks for finding in check(seen))


def has_problem(findings: tuple[Finding, ...]) -> bool:
    return any(finding.level is Level.PROBLEM for finding in findings)


def is_installed(seen: Observed) -> bool:
    """Whether anything is there that an installation leaves; what may not be read might be there."""
    unknown = seen.components is None and seen.webhooks is None
    return unknown or bool(seen.components or any((seen.leaders or {}).values()) or our_webhooks(seen))


def _say_not_installed(seen: Observed) -> Iterator[Finding]:
    del seen
    yield problem("installation", "nothing of Tessera is installed in this cluster", INSTALL)


def check_version(seen: Observed) -> Iterator[Finding]:
    found = _VERSION.match(seen.version)
    if found is None:
        yield warning("version", f'the API server calls its version "{seen.version}", expected one such as v1.30.0')
        return
    if (int(found[1]), int(found[2])) < (1, OLDEST_MINOR):
        yield problem("version", f"Kubernetes is {seen.version}", f"upgrade it to 1.{OLDEST_MINOR} or newer")
        return
    yield ok("version", f"Kubernetes is {seen.version}")


def check_clock(seen: Observed) -> Iterator[Finding]:
    ahead_s = seen.clock_ahead_s
    if ahead_s is None:
        yield warning("clock", "the API server does not tell its time, so clocks were not compared")
    elif abs(ahead_s) > MOST_CLOCK_S:
        way = "ahead of" if ahead_s > 0 else "behind"
        said = f"this machine's clock is {abs(ahead_s):.0f} s {way} the API server's, so ages shown here are off"
        yield warning("clock", said, "synchronize it, for example with chrony")
    else:
        yield ok("clock", "this machine and the API server agree on the time")


def check_rights(seen: Observed) -> Iterator[Finding]:
    if not seen.unread:
        yield ok("rights", "everything that is looked at may be read")
        return
    tell = problem if seen.nodes is None or seen.pods is None else warning
    yield tell("rights", "; ".join(seen.unread), "ask again as somebody who may, or grant it with a ClusterRole")


def check_scheduler(seen: Observed) -> Iterator[Finding]:
    if seen.components is None:
        return
    pods = [pod for pod in seen.components if _is_called(pod, SCHEDULER)]
    leader = next(filter(None, (seen.leaders or {}).values()), "")
    if not pods and leader:
        yield ok("scheduler", f"the scheduler runs outside of this cluster's pods; {leader} leads")
        return
    if not pods:
        yield problem("scheduler", f"no pod {SCHEDULER} is in {NAMESPACE}", INSTALL)
        return
    ready = [pod for pod in pods if pod.status.is_true("Ready")]
    logs = f"kubectl logs -n {NAMESPACE} deployment/{SCHEDULER}"
    if not ready:
        yield problem("scheduler", f"none of {len(pods)} pods {SCHEDULER} is ready, so no pod gets cards", logs)
    elif len(ready) < len(pods):
        yield warning("scheduler", f"{len(ready)} of {len(pods)} pods {SCHEDULER} are ready", logs)
    elif seen.leaders and not leader:
        yield problem("scheduler", f"all pods {SCHEDULER} are ready, but none leads, so no pod gets cards", logs)
    else:
        yield ok("scheduler", f"{len(ready)} of {len(pods)} pods {SCHEDULER} are ready")


def check_configuration(seen: Observed) -> Iterator[Finding]:
    """Is kube-scheduler told to ask us? Where the chart installed us its configuration is in a ConfigMap."""
    if seen.configurations is None:
        return
    schedulers = [pod for pod in seen.components or () if _is_called(pod, SCHEDULER)]
    if schedulers and not any(each.name == KUBE_SCHEDULER for pod in schedulers for each in pod.containers):
        yield ok(KUBE_SCHEDULER, "there is none beside our scheduler, which decides by itself")
        return
    found = [text for each in seen.configurations for text in (each.data or {}).values()]
    if not found:
        said = f"how kube-scheduler is configured is not to be seen: no ConfigMap {SCHEDULER} is in {NAMESPACE}"
        yield warning(KUBE_SCHEDULER, said, "compare it with what `tessera scheduler config` prints")
        return
    if not any(_asks_us(text) for text in found):
        said = f"ConfigMap {NAMESPACE}/{SCHEDULER} has no profile {SCHEDULER} with an extender that filters and binds"
        yield problem(KUBE_SCHEDULER, said, "put there what `tessera scheduler config` prints")
        return
    yield ok(KUBE_SCHEDULER, f"its profile {SCHEDULER} asks our extender")


def check_agents(seen: Observed) -> Iterator[Finding]:
    if seen.components is None:
        return
    pods = [pod for pod in seen.components if _is_called(pod, AGENT)]
    lame = [pod.spec.node_name or "no node" for pod in pods if not pod.status.is_true("Ready")]
    if not pods and any(node.cards for node in seen.nodes or ()):
        yield ok("agents", f"no pod {AGENT} is in {NAMESPACE}, but somebody reports the nodes' cards")
    elif not pods:
        yield problem("agents", f"no pod {AGENT} is in {NAMESPACE}, so nobody reports cards", INSTALL)
    elif lame:
        said = f"{len(lame)} of {len(pods)} pods {AGENT} are not ready: on {named(sorted(lame))}"
        yield warning("agents", said, f"kubectl logs -n {NAMESPACE} daemonset/{AGENT}")
    else:
        yield ok("agents", f"{len(pods)} of {len(pods)} pods {AGENT} are ready")


def check_definitions(seen: Observed) -> Iterator[Finding]:
    if seen.definitions is None:
        return
    missing = [name for name in DEFINITIONS if name not in seen.definitions]
    if missing:
        yield warning("definitions", f"not defined: {', '.join(missing)}", "run helm upgrade, which defines them")
    else:
        yield ok("definitions", f"{' and '.join(DEFINITIONS)} are defined")


def check_pods(seen: Observed) -> Iterator[Finding]:
    if seen.pods is None:
        return
    waiting = [pod for pod in seen.pods if pod.waits]
    if not waiting:
        yield ok("pods", f"none of {len(seen.pods)} pods with cards waits")
        return
    first = waiting[0]
    because = first.waits.sentence if first.waits else ""
    said = f"{len(waiting)} of {len(seen.pods)} pods that want cards wait; {first.key}: {because}"
    yield warning("pods", said, "tessera pods -A shows all of them")


def _is_called(pod: ViewedPod, name: str) -> bool:
    return (pod.metadata.labels or {}).get(NAME_LABEL) == name


def _asks_us(text: str) -> bool:
    try:
        document: object = yaml.safe_load(text)
    except yaml.YAMLError:
        return False
    if not isinstance(document, dict):
        return False
    configuration = cast("dict[str, Any]", document)
    profiles = [profile.get("schedulerName") for profile in configuration.get("profiles") or ()]
    asks = any(each.get("filterVerb") and each.get("bindVerb") for each in configuration.get("extenders") or ())
    return SCHEDULER in profiles and asks
