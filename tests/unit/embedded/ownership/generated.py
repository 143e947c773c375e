"""Objects of the drawn schema, of every shape, whose values repeat often enough to meet."""

from hypothesis import strategies as st

from tests.unit.embedded.ownership.drawn import thing

names = st.sampled_from("abc")
numbers = st.integers(0, 2)
texts = st.sampled_from(["x", "y", ""])


def some(**fields):
    return st.fixed_dictionaries({}, optional=fields)


def keyed(**fields):
    """A list of elements by name, each name once."""
    element = st.builds(lambda name, more: {"name": name} | more, names, some(**fields))
    return st.lists(element, max_size=3, unique_by=lambda element: element["name"])


anything = st.recursive(
    numbers | texts, lambda below: st.lists(below, max_size=2) | st.dictionaries(names, below, max_size=2), max_leaves=4
)
specs = some(
    replicas=numbers,
    selector=st.dictionaries(names, texts, max_size=2),
    strategy=some(type=texts, surge=numbers),
    containers=keyed(image=texts, env=keyed(value=texts)),
    args=st.lists(texts, max_size=2),
    tags=st.lists(names, max_size=3, unique=True),
    pools=st.dictionaries(names, some(size=numbers, zone=texts), max_size=2),
    anything=st.dictionaries(names, anything, max_size=2),
)
metadata = some(labels=st.dictionaries(names, texts, max_size=2))
things = st.builds(thing, metadata, spec=specs, data=st.dictionaries(names, texts, max_size=3))
