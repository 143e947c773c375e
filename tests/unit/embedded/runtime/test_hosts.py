"""The names that a pod finds in its /etc/hosts."""

from tessera.embedded.runtime.hosts import hosts_text

POD = {"metadata": {"name": "a", "namespace": "lab"}, "spec": {}}
FULL = "w-0.fit.lab.svc.cluster.local w-0.fit.lab.svc w-0.fit.lab w-0.fit"


def test_a_domain_that_a_pod_searches_can_be_left_out_of_names() -> None:
    searching = {**POD, "spec": {"dnsConfig": {"searches": ["fit.lab.svc.cluster.local"]}}}
    assert f"127.64.0.2\t{FULL} w-0\n" in hosts_text(searching, "127.64.0.1", [("127.64.0.2", FULL)])


def test_without_such_a_domain_names_are_as_services_have_them() -> None:
    assert f"127.64.0.2\t{FULL}\n" in hosts_text(POD, "127.64.0.1", [("127.64.0.2", FULL)])
