"""Where a proxied page comes from, and what is passed on."""

import msgspec
import pytest

from tessera.embedded.controllers.objects import EndpointSlice
from tessera.embedded.doors.page_sources import Source, node_page, pod_page, service_page
from tessera.embedded.doors.pages import answer_headers, chunk, request_head, split_path
from tessera.embedded.refusals import ApiRefusal
from tessera.embedded.serving.proxies import Proxied

POD = {
    "spec": {"containers": [{"name": "main", "ports": [{"name": "http", "containerPort": 8080}]}]},
    "status": {"podIP": "127.64.0.1"},
}
SERVICE = {"spec": {"ports": [{"name": "web", "port": 80}]}}
SLICE = msgspec.convert(
    {
        "metadata": {"name": "web-1"},
        "ports": [{"name": "web", "port": 8080}],
        "endpoints": [{"addresses": ["127.64.0.1"]}],
    },
    EndpointSlice,
)


@pytest.mark.parametrize(
    ("proxied", "source"),
    [
        (Proxied("web"), Source("127.64.0.1", 8080)),
        (Proxied("web", "http"), Source("127.64.0.1", 8080)),
        (Proxied("web", "9090", "https"), Source("127.64.0.1", 9090, True)),
    ],
)
def test_a_pods_page_is_found_by_number_or_name(proxied, source):
    assert pod_page(POD, proxied) == source


@pytest.mark.parametrize("port", ["web", "80"])
def test_a_services_page_is_found_by_number_or_name(port):
    assert service_page(SERVICE, Proxied("web", port), [SLICE]) == Source("127.64.0.1", 8080)


@pytest.mark.parametrize(
    ("find", "code", "message"),
    [
        (lambda: service_page(SERVICE, Proxied("web", "80"), []), 503, 'no endpoints available for service "web"'),
        (
            lambda: service_page(SERVICE, Proxied("web", "81"), [SLICE]),
            503,
            'no service port 81 found for service "web"',
        ),
        (lambda: pod_page(POD, Proxied("web", "smtp")), 400, 'the port of web is "smtp", expected a number or one of'),
        (lambda: pod_page(POD, Proxied("web", "80", "ftp")), 400, 'the scheme of web is "ftp", expected http or https'),
        (lambda: pod_page({**POD, "status": {}}, Proxied("web")), 400, "pod web has no address yet"),
        (lambda: node_page({"metadata": {"name": "a"}}, Proxied("a")), 503, 'node "a" has no kubelet that answers'),
    ],
)
def test_what_is_not_there_is_told(find, code, message):
    with pytest.raises(ApiRefusal) as refusal:
        find()
    assert refusal.value.code == code
    assert message in refusal.value.message


@pytest.mark.parametrize(
    ("path", "prefix", "page"),
    [
        (b"/api/v1/namespaces/a/pods/web:80/proxy/x%2Fy/z", b"/api/v1/namespaces/a/pods/web:80/proxy", b"/x%2Fy/z"),
        (b"/api/v1/namespaces/a/pods/proxy/proxy/", b"/api/v1/namespaces/a/pods/proxy/proxy", b"/"),
        (b"/api/v1/nodes/a:9400/proxy", b"/api/v1/nodes/a:9400/proxy", b"/"),
    ],
)
def test_a_page_is_asked_for_as_it_was_written(path, prefix, page):
    assert split_path(path) == (prefix, page)


def test_the_token_stays_here_and_all_else_goes_on():
    headers = [(b"host", b"us"), (b"authorization", b"Bearer x"), (b"connection", b"keep-alive"), (b"accept", b"*/*")]
    head = request_head("GET", b"/x", b"a=b", headers, Source("127.64.0.1", 80))
    assert head == b"GET /x?a=b HTTP/1.1\r\nhost: 127.64.0.1:80\r\naccept: */*\r\nconnection: close\r\n\r\n"


def test_a_body_without_a_length_goes_on_in_chunks():
    head = request_head("POST", b"/", b"", [(b"transfer-encoding", b"chunked")], Source("127.64.0.1", 80))
    assert b"transfer-encoding: chunked\r\n" in head
    assert chunk(b"hello") + chunk(b"") == b"5\r\nhello\r\n0\r\n\r\n"


def test_a_redirection_stays_behind_us():
    said = [(b"Location", b"/there"), (b"Transfer-Encoding", b"chunked"), (b"X-Own", b"1")]
    assert answer_headers(said, b"/api/proxy") == [(b"location", b"/api/proxy/there"), (b"x-own", b"1")]
    elsewhere = [(b"location", b"https://elsewhere/")]
    assert answer_headers(elsewhere, b"/api/proxy") == elsewhere
