"""CEL, one expression at a time: what it gives, when it fails, and what is no rule at all."""

from datetime import UTC, datetime

import pytest

from tessera.embedded.rules import RuleBroken, RuleFailed, compile_rule
from tessera.embedded.rules.types import DOUBLE, DYN, INT, STRING, list_of, map_of

POD = {
    "kind": "Pod",
    "metadata": {"name": "worker", "labels": {"a": "1"}},
    "spec": {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}, {"name": "side"}]},
}
VARIABLES = {
    "object": (DYN, POD),
    "oldObject": (DYN, None),
    "any": (DYN, {"one": 1, "half": 0.5, "text": "x", "yes": True, "none": None, "list": [3, 1, 2]}),
    "count": (INT, 2),
    "ratio": (DOUBLE, 0.5),
    "name": (STRING, "worker"),
    "names": (list_of(STRING), ["a", "b"]),
    "labels": (map_of(STRING, STRING), {"a": "1"}),
}


def decide(text):
    program = compile_rule(text, {name: kind for name, (kind, _) in VARIABLES.items()})
    return program.evaluate({name: value for name, (_, value) in VARIABLES.items()})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("0x1F", 31),
        ("-9223372036854775808", -(2**63)),
        ("1.5e3", 1500.0),
        (".5", 0.5),
        ("'it\\'s'", "it's"),
        ('"a\\tb\\u00e9\\x41\\101"', "a\tbéAA"),
        ("r'a\\d'", r"a\d"),
        ("'''two\nlines'''", "two\nlines"),
        ('"""say "so\\""""', 'say "so"'),
        ("''", ""),
        ("b'\\xff\\x00a'", b"\xff\x00a"),
        ("b'é'", "é".encode()),
        ("[1, 2,]", [1, 2]),
        ("{'a': 1, 'b': [true, null]}", {"a": 1, "b": [True, None]}),
        ("1 + 2 * 3 - 4 / 2 % 3", 5),
        ("(1 + 2) * 3", 9),
        ("2 - -2", 4),
        ("-count", -2),
        ("!!true", True),
        ("7 / -2", -3),
        ("-7 % 3", -1),
        ("1.0 / 0.0 > 1e300", True),
        ("true ? 1 : 2", 1),
        ("false ? 1 : true ? 2 : 3", 2),
        ("1 < 2 && 2 <= 2 && 'b' > 'a' && 1.5 >= 1.5", True),
        ("1 < 1.5 && ratio < 1", True),
        ("// nothing\n1 // one", 1),
        ("any.one + count", 3),
        ("names + ['c']", ["a", "b", "c"]),
        ("'a' + name", "aworker"),
    ],
)
def test_values_and_operators(text, value):
    result = decide(text)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("any.one == any.yes", False),
        ("[1] == [dyn(true)]", False),
        ("any.one == 1.0 * 1.0 || dyn(1) == dyn(1.0)", True),
        ("[1, [2]] == [1, [2]]", True),
        ("{'a': 1} == {'a': dyn(1.0)}", True),
        ("{'a': 1} != {'b': 1}", True),
        ("any.text == 'x' && 'x' == any.text", True),
        ("any.one == 'x'", False),
        ("oldObject == null && object != null", True),
        ("1 in [1, 2] && !(3 in [1, 2])", True),
        ("dyn(true) in [1]", False),
        ("'a' in labels && !('b' in labels)", True),
        ("optional.of(1) == optional.of(1) && optional.none() != optional.of(1)", True),
        ("type(any.text) == string && type(any.one) != string", True),
    ],
)
def test_equality_keeps_types_apart(text, value):
    assert decide(text) is value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("object.metadata.name", "worker"),
        ("object['metadata']['name']", "worker"),
        ("object.spec.containers[1].name", "side"),
        ("has(object.metadata.labels) && !has(object.metadata.annotations)", True),
        ("has(oldObject.metadata)", False),
        ("object.?metadata.?name.orValue('none')", "worker"),
        ("object.?spec.?nodeName.orValue('none')", "none"),
        ("oldObject.?metadata.?labels[?'a'] == object.?metadata.?labels[?'a']", False),
        ("oldObject.?metadata.?labels[?'b'] == object.?metadata.?labels[?'b']", True),
        ("object.?metadata.labels.a.orValue('')", "1"),
        ("object.?nothing.labels.a.orValue('none')", "none"),
        ("object.spec.containers[?5].hasValue()", False),
        ("object.spec.containers[?0].?name.value()", "main"),
        ("optional.none().or(optional.of(2)).value()", 2),
        ("optional.ofNonZeroValue('').hasValue()", False),
        ("object.?metadata.?name.optMap(n, n + '!').orValue('')", "worker!"),
        ("object.?absent.optMap(n, n + '!').orValue('none')", "none"),
        ("object.?metadata.optFlatMap(m, m.?name).orValue('none')", "worker"),
    ],
)
def test_what_may_be_missing(text, value):
    assert decide(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("names.all(n, size(n) == 1)", True),
        ("names.exists(n, n == 'b')", True),
        ("names.exists_one(n, n == 'b')", True),
        ("names.exists_one(n, true)", False),
        ("any.list.filter(n, n > 1)", [3, 2]),
        ("any.list.map(n, n * 2)", [6, 2, 4]),
        ("any.list.map(n, n > 1, n * 2)", [6, 4]),
        ("labels.map(k, k + '=' + labels[k])", ["a=1"]),
        ("labels.exists(k, k == 'a')", True),
        ("[[1, 2], [3]].map(xs, xs.map(x, x + 1))", [[2, 3], [4]]),
        ("[1, 2].exists(x, [2, 3].exists(y, x == y))", True),
        ("[1].map(x, [2].map(x, x))", [[2]]),
        ("cel.bind(x, count + 1, x * x)", 9),
        (
            "object.spec.containers.exists(c, has(c.resources.limits) && 'nvidia.com/gpu' in c.resources.limits)",
            True,
        ),
    ],
)
def test_macros(text, value):
    assert decide(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("size('héé') + names.size() + size(labels)", 6),
        ("'a,b,c'.split(',')", ["a", "b", "c"]),
        ("'a,b,c'.split(',', 2)", ["a", "b,c"]),
        ("'abc'.split('')", ["a", "b", "c"]),
        ("'abc'.split('', 2)", ["a", "bc"]),
        ("'a'.split(',', 0)", []),
        ("'ÄBc'.lowerAscii() + 'äb'.upperAscii()", "ÄbcäB"),
        ("'gpu-07'.matches('^[a-z]+-[0-9]+$') && matches('a', 'a|b')", True),
        ("'abc'.startsWith('a') && 'abc'.endsWith('c') && 'abc'.contains('b')", True),
        ("'a-b-c'.replace('-', '')", "abc"),
        ("'a-b-c'.replace('-', '', 1)", "ab-c"),
        ("names.join(', ') + names.join()", "a, bab"),
        ("' x '.trim() + 'abc'.charAt(1) + 'abc'.charAt(3)", "xb"),
        ("'banana'.indexOf('an', 2) + 'banana'.lastIndexOf('an')", 6),
        ("'banana'.lastIndexOf('an', 2)", 1),
        ("'tessera'.substring(1, 3) + 'tessera'.substring(5)", "esra"),
        ("'a1b22'.find('[0-9]+') + 'a1b22'.findAll('[0-9]+').join('/')", "11/22"),
        ("'a1b22'.findAll('[0-9]', 1)", ["1"]),
        ("'%s has %d of %s, %.1f%%: %s'.format([name, count, ['a', 1, null], ratio, {'k': true}])",
         "worker has 2 of [a, 1, null], 0.5%: {k: true}"),
        ("[1, 2, 2].isSorted() && !['b', 'a'].isSorted() && [].isSorted()", True),
        ("[1, 2].sum() + [].sum()", 3),
        ("[1.5, dyn(1)].sum()", 2.5),
        ("any.list.min() + any.list.max() * 10", 31),
        ("any.list.indexOf(1) + any.list.indexOf(9)", 0),
        ("[1, 2, 1].lastIndexOf(1)", 2),
        ("string(1) + string(1.5) + string(2.0) + string(true) + string(b'a') + string('b')", "11.52trueab"),
        ("int('7') + int(2.9) + int(timestamp('1970-01-01T00:00:01Z'))", 10),
        ("double('1.5') + double(2)", 3.5),
        ("bool('true') && !bool('0')", True),
        ("dyn(1) == 1", True),
        ("quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('1k').compareTo(quantity('1000')) == 0", True),
        ("quantity('1500m').add(quantity('500m')).asInteger() + quantity('3').sub(1).asInteger()", 4),
        ("isQuantity('1Ki') && !isQuantity('many') && quantity('1').isInteger() && quantity('-1').sign() == -1", True),
        ("quantity('500m').asApproximateFloat()", 0.5),
        ("duration('1h30m') > duration('89m') && duration('-1s') < duration('0')", True),
        ("string(duration('1h1.5s'))", "3601.5s"),
        ("duration('1s') + duration('500ms') - duration('1s') == duration('0.5s')", True),
        ("timestamp('2026-01-02T04:04:05+01:00') == timestamp('2026-01-02T03:04:05Z')", True),
        ("string(timestamp('2026-01-02T03:04:05Z') + duration('1s'))", "2026-01-02T03:04:06Z"),
        ("timestamp('2026-01-02T00:00:00Z') - timestamp('2026-01-01T00:00:00Z') == duration('24h')", True),
        ("timestamp(0)", datetime(1970, 1, 1, tzinfo=UTC)),
    ],
)  # fmt: skip
def test_functions(text, value):
    assert decide(text) == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("object.spec.nodeName == 'a'", "no such key: nodeName"),
        ("oldObject.metadata", "no such key: metadata"),
        ("labels['b']", "no such key: b"),
        ("names[2]", "index out of bounds: 2"),
        ("names[-1]", "index out of bounds: -1"),
        ("object[1]", "no such key: 1"),
        ("any.one + any.text", "no such overload"),
        ("any.one[0]", "no such overload"),
        ("any.text > 1", "no such overload"),
        ("any.one ? 1 : 2", "no such overload"),
        ("any.one && true", "no such overload"),
        ("any.one.map(x, x)", "no such overload"),
        ("[1].exists(x, any.one)", "no such overload"),
        ("[1].filter(x, any.one)", "no such overload"),
        ("9223372036854775807 + 1", "integer overflow"),
        ("-9223372036854775807 - count", "integer overflow"),
        ("count / 0", "division by zero"),
        ("count % 0", "modulus by zero"),
        ("[].min()", "min called on empty list"),
        ("['a', dyn(1)].isSorted()", "has no order"),
        ("['a'].sum()", "has no sum"),
        ("int('seven')", "type conversion error"),
        ("int(1e300)", "integer overflow"),
        ("bool('maybe')", "type conversion error"),
        ("quantity('many')", "many"),
        ("quantity('500m').asInteger()", "cannot convert"),
        ("duration('soon')", "invalid duration"),
        ("timestamp('yesterday')", "yesterday"),
        ("timestamp('2026-13-02T00:00:00Z')", "out of range"),
        ("timestamp('9999-12-31T00:00:00Z') + duration('999999h')", "out of range"),
        ("'a'.matches('(')", "error parsing regexp"),
        ("'abc'.substring(2, 1)", "index out of range"),
        ("'abc'.charAt(9)", "index out of range"),
        ("any.list.join(',')", "join"),
        ("'%d'.format(['a'])", "decimal clause"),
        ("'%s %s'.format(['a'])", "fewer arguments"),
        ("'%q'.format(['a'])", "unrecognized formatting clause"),
        ("optional.none().value()", "optional.none() dereference"),
        ("{'a': 1, dyn('a'): 2}", "repeated key"),
        ("names.exists_one(n, object.absent)", "no such key: absent"),
    ],
)
def test_what_cannot_be_decided_fails_with_a_reason(text, why):
    with pytest.raises(RuleFailed) as failure:
        decide(text)
    assert why in str(failure.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("object.absent || true", True),
        ("true || object.absent", True),
        ("object.absent && false", False),
        ("false && object.absent", False),
        ("[1, 2].exists(x, x == 2 || object.absent)", True),
        ("[1, 2].all(x, x == 1 && (x == 1 || object.absent))", False),
        ("any.one || true", True),
    ],
)
def test_one_side_that_decides_makes_up_for_one_that_fails(text, value):
    assert decide(text) is value


@pytest.mark.parametrize(
    "text",
    ["object.absent || false", "object.absent && true", "[1].all(x, object.absent)", "[1].exists(x, object.absent)"],
)
def test_a_failure_that_nothing_decides_past_is_one(text):
    with pytest.raises(RuleFailed, match="no such key: absent"):
        decide(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "1:1: Syntax error: mismatched input '<EOF>'"),
        ("1 +", "1:4: Syntax error"),
        ("1 2", "1:3: Syntax error: mismatched input '2'"),
        ("(1", "1:3: Syntax error"),
        ("a.", "1:3: Syntax error: mismatched input '<EOF>' expecting a field"),
        ("{'a' 1}", "1:6: Syntax error"),
        ("'open", "token recognition error"),
        ("1 & 2", "token recognition error"),
        ("1u", "token recognition error"),
        ("'\\q'", "unknown escape"),
        ("'\\ud800'", "unknown escape"),
        ("9223372036854775808", "invalid int literal"),
        ("namespace == 'a'", "reserved identifier: namespace"),
        ("nobody", "1:1: undeclared reference to 'nobody'"),
        ("true &&\n nobody", "2:2: undeclared reference to 'nobody'"),
        ("explode(1)", "undeclared reference to 'explode'"),
        ("name.explode()", "undeclared reference to 'explode'"),
        ("all(x, true)", "undeclared reference to 'all'"),
        ("1 + 'a'", "1:3: found no matching overload for '_+_' applied to '(int, string)'"),
        ("1 + 1.5", "found no matching overload for '_+_' applied to '(int, double)'"),
        ("count == 'two'", "found no matching overload for '_==_' applied to '(int, string)'"),
        ("names == ['a'] || names == [1]", "'_==_' applied to '(list(string), list(int))'"),
        ("name > 1", "found no matching overload for '_>_' applied to '(string, int)'"),
        ("!count", "found no matching overload for '!_' applied to '(int)'"),
        ("count && true", "expected type 'bool' but found 'int'"),
        ("count ? 1 : 2", "expected type 'bool' but found 'int'"),
        ("true ? 1 : 'a'", "found no matching overload for '_?_:_'"),
        ("name.first", "type 'string' does not support field selection"),
        ("count[0]", "found no matching overload for '_[_]' applied to '(int, int)'"),
        ("names['a']", "found no matching overload for '_[_]' applied to '(list(string), string)'"),
        ("size(count)", "found no matching overload for 'size' applied to '(int)'"),
        ("name.startsWith(1)", "found no matching overload for 'startsWith'"),
        ("has(name)", "invalid argument to has() macro"),
        ("names.all(1, true)", "argument must be a simple name"),
        ("names.all(n, n)", "expected type 'bool' but found 'string'"),
        ("count.all(n, true)", "cannot be range of a comprehension"),
        ("names.map(n, n + 1)", "found no matching overload for '_+_' applied to '(string, int)'"),
        ("(" * 500 + "1" + ")" * 500, "nests deeper"),
        ("!" * 500 + "true", "nests deeper"),
        ("1" + "+1" * 500, "nests deeper"),
        ("object" + ".a" * 500, "nests deeper"),
        ("1" * 200_000, "characters"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_no_rule(text, why):
    with pytest.raises(RuleBroken) as broken:
        decide(text)
    assert why in str(broken.value)
    assert str(broken.value).startswith("ERROR: <input>:")


def test_many_terms_are_not_deep():
    assert decide(" || ".join(["false"] * 1000 + ["true"])) is True


def test_a_program_may_be_decided_again_while_it_is_being_decided():
    class Asks(dict):
        """A map that decides the same program for the value of a key."""

        def __missing__(self, key):
            return [1] if depth else deeper()

    depth = []
    program = compile_rule("[1, 2].map(x, any.inner.map(y, x))", {"any": DYN})

    def deeper():
        depth.append(1)
        return [len(program.evaluate({"any": Asks()}))] * 2

    assert program.evaluate({"any": Asks()}) == [[1, 1], [2]]
