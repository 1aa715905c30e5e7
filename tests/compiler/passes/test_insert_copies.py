"""insert_copies, text in and text out: a copy only where a layout cannot be read directly."""

from __future__ import annotations

import pytest

from lucid.compiler.passes.insert_copies import insert_copies
from lucid.ir import parse, verify


def with_copies(text: str) -> str:
    return str(verify(insert_copies(parse(text))))


def test_a_reshape_of_memory_in_order_needs_no_copy():
    text = """graph f(x: f32[2,3]):
    %0: f32[6] = reshape[shape=(6,)] x
    %1: f32[6] = exp %0
    return %1"""
    assert with_copies(text) == text


def test_a_reshape_across_a_transpose_needs_one():
    assert (
        with_copies("""graph f(x: f32[2,3]):
    %0: f32[3,2] = transpose[permutation=(1,0)] x
    %1: f32[6]   = reshape[shape=(6,)] %0
    %2: f32[6]   = exp %1
    return %2""")
        == """graph f(x: f32[2,3]):
    %0: f32[3,2] = transpose[permutation=(1,0)] x
    %1: f32[3,2] = copy %0
    %2: f32[6]   = reshape[shape=(6,)] %1
    %3: f32[6]   = exp %2
    return %3"""
    )


def test_a_reshape_that_splits_an_axis_of_a_transpose_needs_none():
    text = """graph f(x: f32[6,4]):
    %0: f32[4,6]   = transpose[permutation=(1,0)] x
    %1: f32[4,2,3] = reshape[shape=(4,2,3)] %0
    %2: f32[4,2,3] = exp %1
    return %2"""
    assert with_copies(text) == text


@pytest.mark.parametrize(
    "view,shape",
    [
        ("transpose[permutation=(1,0)]", "6,4"),
        ("slice[starts=(0,2), limits=(4,6), strides=(1,1), drop=()]", "4,4"),
        ("slice[starts=(0,0), limits=(4,6), strides=(2,1), drop=()]", "2,6"),
    ],
)
def test_products_read_transposes_and_blocks_as_they_lie(view, shape):
    m, k = shape.split(",")
    text = f"""graph f(x: f32[4,6], y: f32[{k},5]):
    %0: f32[{m},{k}] = {view} x
    %1: f32[{m},5] = matmul %0 y
    return %1"""
    assert with_copies(text) == text


def test_products_copy_what_has_no_adjacent_elements():
    text = with_copies("""graph f(x: f32[4,8], y: f32[4,5]):
    %0: f32[4,4] = slice[starts=(0,0), limits=(4,8), strides=(1,2), drop=()] x
    %1: f32[4,5] = matmul %0 y
    return %1""")
    assert "%1: f32[4,4] = copy %0" in text and "matmul %1 y" in text


def test_outputs_have_memory_of_their_own():
    assert (
        with_copies("""graph f(x: f32[2]):
    %0: f32[2] = exp x
    return x, %0, %0""")
        == """graph f(x: f32[2]):
    %0: f32[2] = exp x
    %1: f32[2] = copy x
    %2: f32[2] = copy %0
    return %1, %0, %2"""
    )


def test_an_output_that_is_a_view_is_copied():
    assert (
        with_copies("""graph f(x: f32[2,3]):
    %0: f32[2,3] = exp x
    %1: f32[3,2] = transpose[permutation=(1,0)] %0
    return %1""")
        == """graph f(x: f32[2,3]):
    %0: f32[2,3] = exp x
    %1: f32[3,2] = transpose[permutation=(1,0)] %0
    %2: f32[3,2] = copy %1
    return %2"""
    )


def test_an_output_that_is_a_number_is_filled_in():
    assert (
        with_copies("graph f(x: f32[2]):\n    return 2.0:f32")
        == """graph f(x: f32[2]):
    %0: f32[] = full[shape=(), dtype='f32'] 2.0:f32
    return %0"""
    )


def test_a_view_of_a_number_is_filled_in():
    text = with_copies("""graph f(x: f32[2]):
    %0: f32[2] = broadcast[shape=(2,), axes=()] 3.0:f32
    return %0""")
    assert "full[shape=(2,), dtype='f32'] 3.0:f32" in text


# Products that are read transposed


def test_a_product_whose_transpose_is_the_result_is_computed_transposed():
    """(xᵀ y)ᵀ = yᵀ x, as in the gradient of a weight."""
    assert (
        with_copies("""graph f(x: f32[4,2], y: f32[4,3]):
    %0: f32[2,4] = transpose[permutation=(1,0)] x
    %1: f32[2,3] = matmul %0 y
    %2: f32[3,2] = transpose[permutation=(1,0)] %1
    return %2""")
        == """graph f(x: f32[4,2], y: f32[4,3]):
    %0: f32[3,4] = transpose[permutation=(1,0)] y
    %1: f32[3,2] = matmul %0 x
    return %1"""
    )


def test_so_is_a_stack_of_products_that_is_read_element_by_element():
    assert (
        with_copies("""graph f(x: f32[5,4,2], y: f32[5,2,3]):
    %0: f32[5,4,3] = matmul x y
    %1: f32[5,3,4] = transpose[permutation=(0,2,1)] %0
    %2: f32[5,3,4] = exp %1
    return %2""")
        == """graph f(x: f32[5,4,2], y: f32[5,2,3]):
    %0: f32[5,2,4] = transpose[permutation=(0,2,1)] x
    %1: f32[5,3,2] = transpose[permutation=(0,2,1)] y
    %2: f32[5,3,4] = matmul %1 %0
    %3: f32[5,3,4] = exp %2
    return %3"""
    )


@pytest.mark.parametrize(
    "text",
    [
        """graph f(x: f32[4,2], y: f32[2,3], z: f32[4,5]):
    %0: f32[4,3] = matmul x y
    %1: f32[3,4] = transpose[permutation=(1,0)] %0
    %2: f32[3,5] = matmul %1 z
    return %2""",
        """graph f(x: f32[4,2], y: f32[2,3]):
    %0: f32[4,3] = matmul x y
    %1: f32[3,4] = transpose[permutation=(1,0)] %0
    %2: f32[3,4] = exp %1
    return %0, %2""",
    ],
    ids=["for-a-product", "also-read-itself"],
)
def test_a_product_stays_where_transposing_it_saves_nothing(text):
    assert with_copies(text) == text
