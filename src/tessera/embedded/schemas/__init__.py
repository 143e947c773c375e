"""What the fields of every kind are: for built-in kinds from the official client, for custom ones from definitions.

Pure: documents in, documents and causes out. What a kind demands beyond its schema belongs in `resources`, rules in CEL
belong in `rules`.
"""

from tessera.embedded.schemas.definitions import NotStructural, read_definition
from tessera.embedded.schemas.openapi import openapi_of
from tessera.embedded.schemas.schema import Schema, builtin_schema

__all__ = ["NotStructural", "Schema", "builtin_schema", "openapi_of", "read_definition"]
