"""Who somebody is and what they may do: tokens, roles, and the reviews that ask about them.

Decisions are pure over what `Reading` shows; only `state` touches the disk. What a refusal says belongs in `serving`.
"""

from tessera.embedded.access.authorizer import Authorizer, Decision
from tessera.embedded.access.reading import Reading
from tessera.embedded.access.rules import Attributes
from tessera.embedded.access.tokens import Tokens
from tessera.embedded.access.users import ANONYMOUS, User

__all__ = ["ANONYMOUS", "Attributes", "Authorizer", "Decision", "Reading", "Tokens", "User"]
