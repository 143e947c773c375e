"""One request, understood: who asks for what to be done with which kind, and with which body."""

import msgspec

from tessera.embedded.access import User
from tessera.embedded.resources import Served
from tessera.embedded.serving.forms import Form
from tessera.embedded.serving.options import Options
from tessera.embedded.serving.paths import Target


class Asked(msgspec.Struct, kw_only=True):
    """`warnings` are gathered on the way and go back as headers."""

    verb: str
    target: Target
    options: Options
    user: User
    served: Served
    form: Form = Form.OBJECT
    body: bytes = b""
    content_type: str = "application/json"
    user_agent: str = ""
    warnings: list[str] = msgspec.field(default_factory=list[str])

    @property
    def manager(self) -> str:
        """Who is said to own what is written: whoever says a name, or the program before its version."""
        return self.options.field_manager or self.user_agent.partition("/")[0] or "unknown"
