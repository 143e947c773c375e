"""The /etc/hosts of a pod: itself, its aliases, and the names that the cluster has for others."""

from collections.abc import Iterable, Sequence

from tessera.embedded.documents import Frozen
from tessera.embedded.runtime.parts import part


def hosts_text(pod: Frozen, address: str, names: Iterable[tuple[str, str]]) -> str:
    spec: Frozen = pod["spec"]
    name, namespace = hostname_of(pod), pod["metadata"]["namespace"]
    lines = ["127.0.0.1\tlocalhost", "::1\tlocalhost ip6-localhost ip6-loopback"]
    own = f"{name}.{spec['subdomain']}.{namespace}.svc.cluster.local\t{name}" if spec.get("subdomain") else name
    lines.append(f"{address}\t{own}")
    aliases: Sequence[Frozen] = spec.get("hostAliases") or ()
    lines += [f"{alias['ip']}\t{' '.join(alias.get('hostnames') or ())}" for alias in aliases]
    searches: Sequence[str] = part(spec, "dnsConfig").get("searches") or ()
    lines += [f"{host}\t{' '.join((called, *shorten(called, searches)))}" for host, called in names]
    return "".join(f"{line}\n" for line in lines)


def shorten(called: str, searches: Sequence[str]) -> list[str]:
    """What is left to say where a resolver would add one of these domains."""
    ends = [f".{domain}" for domain in searches]
    return [name.removesuffix(end) for name in called.split() for end in ends if name.endswith(end)]


def hostname_of(pod: Frozen) -> str:
    return (pod["spec"].get("hostname") or pod["metadata"]["name"])[:63].rstrip("-.")
