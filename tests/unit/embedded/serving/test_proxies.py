"""Whom a proxied path means."""

import pytest

from tessera.embedded.serving.proxies import Proxied, read_proxied, ready_addresses


@pytest.mark.parametrize(
    ("text", "proxied"),
    [
        ("web", Proxied("web")),
        ("web:80", Proxied("web", "80")),
        ("http:web:http", Proxied("web", "http", "http")),
        ("https:web:", Proxied("web", "", "https")),
    ],
)
def test_a_proxied_name_says_scheme_and_port(text, proxied):
    assert read_proxied(text) == proxied


def test_only_ready_endpoints_of_the_service_count():
    def slice_of(service, *endpoints):
        return {"metadata": {"labels": {"kubernetes.io/service-name": service}}, "endpoints": list(endpoints)}

    ready = {"addresses": ["127.0.1.1"], "conditions": {"ready": True}}
    unready = {"addresses": ["127.0.1.2"], "conditions": {"ready": False}}
    slices = [slice_of("web", ready, unready), slice_of("other", ready), {"metadata": {}, "endpoints": None}]
    assert ready_addresses("web", slices) == ["127.0.1.1"]
    assert ready_addresses("none", slices) == []
