"""A body against its kind: types that do not fit are refused, fields that nobody knows are told and dropped."""

from tessera.embedded.documents import Document
from tessera.embedded.kinds import Kind
from tessera.embedded.refusals import bad_request
from tessera.embedded.serving.requests import Asked


def vetted(asked: Asked, document: Document) -> Document:
    """The document with what its kind knows. What breaks the schema of a custom resource is found later, as 422."""
    served = asked.served
    if served.schema is None:
        return document
    if mismatches := served.schema.mismatches(document):
        raise bad_request(f"{_unfit(served.kind)}: {mismatches[0].message}")
    unknown = served.schema.unknown_fields(document)
    if not unknown:
        return document
    complaints = [f'unknown field "{path}"' for path in unknown]
    if asked.options.field_validation == "Strict":
        raise bad_request(f"{_unfit(served.kind)}: strict decoding error: {', '.join(complaints)}")
    if asked.options.field_validation != "Ignore":
        asked.warnings += complaints
    return served.schema.pruned(document)


def _unfit(kind: Kind) -> str:
    return f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}'
