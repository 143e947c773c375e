"""The engine multiplies no matrices.

What BLAS answers for a row may depend on how many rows it is asked about together, so a decision looked at twice could
differ in its last bit; and on one machine its small products came out as NaN once in some thousand tries. Sums and
`einsum` do without it.
"""

import ast

import pytest

from tests.repository.files import ROOT

ENGINE = sorted((ROOT / "src/tessera/engine").rglob("*.py"))


@pytest.mark.parametrize("path", ENGINE, ids=lambda path: path.stem)
def test_no_matrix_product_is_in_the_engine(path):
    nodes = list(ast.walk(ast.parse(path.read_text())))
    products = [node.lineno for node in nodes if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)]
    calls = [node.lineno for node in nodes if isinstance(node, ast.Attribute) and node.attr in ("matmul", "dot")]
    assert not products + calls, f"{path}: lines {products + calls} multiply matrices; write a sum or an einsum"
