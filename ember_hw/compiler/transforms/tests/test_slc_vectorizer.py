import pytest

from ember_hw.compiler.transforms.slc_vectorizer import SlcVectorizer


@pytest.mark.parametrize("vector_length", [0, 1, 5, 128])
def test_vector_length_must_be_one_the_dialect_has(vector_length: int) -> None:
    rule = "vector_length must be one of 2, 3, 4, 8, 16, 32, 64, not"
    with pytest.raises(ValueError, match=rf"^{rule} {vector_length}$"):
        SlcVectorizer(vector_length)
