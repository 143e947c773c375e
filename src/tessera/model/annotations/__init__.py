"""What nodes and pods say in their annotations, and how it is spelled.

Written strictly, read liberally: the forms of HAMi, of Volcano and of vendors' plugins are read, old ones too, and what
is left out is listed in docs/annotations.md; what we write is one form, and never one that would read back differently.
What cannot be read is an `InvalidAnnotation` whose sentence names the object, the key, the place, the value and what
was expected.
Positions count from 0, as card indexes do.
"""
