"""Which tests run one after the other in one process, where several processes share them: those of a directory.

They share clusters, which are made once and end with the directory.
"""

from pathlib import PurePath

from xdist.scheduler import LoadScopeScheduling


class ByDirectory(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return directory_of(nodeid)


def directory_of(nodeid: str) -> str:
    """One of the tests' own; what lies below belongs to it."""
    return "/".join(PurePath(nodeid.partition("::")[0]).parts[:2])
