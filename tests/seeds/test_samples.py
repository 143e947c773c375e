"""How samples are taken out of a document, tested on documents of our own."""

from tests.seeds.samples import arguments_of, samples_of, with_what_it_needs

DOCUMENT = """# Guide
## Colours
```python
import colours
paint = colours.Paint()
```
```java
Paint paint = new Paint();
```
## Mixing
~~~Python
with paint.mixed(share=2, name="red") as pot:
    brush = pot.dip()
~~~
Text with ``` in it.
```python
print(brush, len(paint))
```
"""


def test_samples_are_found_by_language_with_the_heading_above_them():
    found = samples_of(DOCUMENT, "python")
    assert [(sample.position, sample.section) for sample in found] == [(0, "Colours"), (1, "Mixing"), (2, "Mixing")]
    assert found[0].text == "import colours\npaint = colours.Paint()\n"
    assert [sample.text for sample in samples_of(DOCUMENT, "java")] == ["Paint paint = new Paint();\n"]


def test_a_sample_is_preceded_by_those_that_make_what_it_uses():
    first, second, third = samples_of(DOCUMENT, "python")
    assert with_what_it_needs(first, ()) == first.text
    assert with_what_it_needs(second, [first]) == f"{first.text}\n{second.text}"
    assert with_what_it_needs(third, [first, second]) == f"{first.text}\n{second.text}\n{third.text}"


def test_a_sample_that_is_not_needed_is_left_out():
    first, second, third = samples_of(DOCUMENT, "python")
    only_paint = third._replace(text="print(paint)")
    assert with_what_it_needs(only_paint, [first, second]) == f"{first.text}\nprint(paint)"


def test_the_arguments_of_a_call_are_read_from_the_sample():
    assert arguments_of(samples_of(DOCUMENT, "python")[1], "mixed") == {"share": 2, "name": "red"}
