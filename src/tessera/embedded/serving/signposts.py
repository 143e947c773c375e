"""What is shown at paths that name no resource: health, the version, what is served, and what it looks like."""

import secrets
from http import HTTPStatus

from tessera.embedded.access import User
from tessera.embedded.documents import Document
from tessera.embedded.refusals import ApiRefusal, bad_request, not_allowed
from tessera.embedded.serving import discovery, openapi
from tessera.embedded.serving.answers import TEXT, Answer, said
from tessera.embedded.serving.envelopes import encode
from tessera.embedded.serving.forms import Form, read_form
from tessera.embedded.serving.options import Options
from tessera.embedded.serving.site import Site

HEALTH = frozenset({"/healthz", "/livez", "/readyz"})
FORGET = "/debug/forget"
"""POST, with `before`: let go of all history before that version, as time would, to see what clients then do."""
ADMIT = "/debug/admit"
"""POST, with `user` and any number of `group`: a token for somebody, as text, for as long as this process lasts."""

_OK = Answer(b"ok", content_type=TEXT)
_AGGREGATED = b"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


_NO_SCHEMAS: Document = {"swagger": "2.0", "info": {"title": "Kubernetes", "version": discovery.VERSION}, "paths": {}}
_NO_SCHEMAS_IN_PROTOBUF = Answer(
    b"\x0a\x032.0", content_type=b"application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
)
"""A document that says its version and no more: field 1, of 3 bytes."""


def nothing_here() -> ApiRefusal:
    """With details, though there are none: `kubectl debug` looks into them unasked."""
    return ApiRefusal(HTTPStatus.NOT_FOUND, "NotFound", "the server could not find the requested resource", {})


class Signposts:
    def __init__(self, site: Site) -> None:
        self._site = site

    def show(self, method: str, path: str, accept: bytes, options: Options, known_as: bytes) -> Answer:
        """`known_as` is the ETag of what the client has already."""
        if path in (FORGET, ADMIT):
            if method != "POST":
                raise not_allowed()
            return self._forget(options) if path == FORGET else self._admit(options)
        if method not in ("GET", "HEAD"):
            raise not_allowed()
        if path in HEALTH or any(path.startswith(f"{health}/") for health in HEALTH):
            return _OK
        if path == "/version":
            return said(discovery.version_info())
        if path == "/openapi/v2":
            return _describe_nothing(accept)
        if path == "/openapi/v3":
            return said(openapi.index(self._site.registry.all()))
        if path.startswith("/openapi/v3/"):
            return self._describe(path.removeprefix("/openapi/v3/"), known_as)
        return self._discover([part for part in path.split("/") if part], read_form(accept))

    def _discover(self, parts: list[str], form: Form) -> Answer:
        kinds = [served.kind for served in self._site.registry.all()]
        match parts:
            case ["api" | "apis" as root] if form is Form.DISCOVERY:
                return Answer(encode(discovery.aggregated(kinds, core=root == "api")), content_type=_AGGREGATED)
            case ["api"]:
                return said(discovery.core_versions(self._site.address))
            case ["apis"]:
                return said(discovery.groups(kinds))
            case ["api", version]:
                found = discovery.resources(kinds, "", version)
            case ["apis", group]:
                found = discovery.group(kinds, group)
            case ["apis", group, version]:
                found = discovery.resources(kinds, group, version)
            case []:
                found = {"paths": ["/api", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"]}
            case _:
                found = None
        if found is None:
            raise nothing_here()
        return said(found)

    def _describe(self, place: str, known_as: bytes) -> Answer:
        served = openapi.at_place(self._site.registry.all(), place)
        if not served:
            raise nothing_here()
        tag = b'"%b"' % openapi.fingerprint(served).encode()
        headers = ((b"etag", tag), (b"vary", b"Accept"))
        if known_as == tag:
            return Answer(b"", HTTPStatus.NOT_MODIFIED, headers=headers)
        return said(openapi.document(served))._replace(headers=headers)

    def _forget(self, options: Options) -> Answer:
        before = dict(options.raw).get("before", "")
        if not before.isdecimal():
            raise bad_request(f'before is "{before}", expected a resourceVersion')
        self._site.store.forget(int(before))
        return _OK

    def _admit(self, options: Options) -> Answer:
        user = dict(options.raw).get("user", "")
        if not user:
            raise bad_request("user is empty, expected a name")
        token = secrets.token_urlsafe()
        groups = tuple(value for key, value in options.raw if key == "group")
        self._site.tokens.admit(token, User(name=user, groups=groups))
        return Answer(token.encode(), content_type=TEXT)


def _describe_nothing(accept: bytes) -> Answer:
    """OpenAPI v2 is asked for by kubectl when v3 has no such kind, and must be there for it to say so."""
    return _NO_SCHEMAS_IN_PROTOBUF if b"protobuf" in accept else said(_NO_SCHEMAS)
