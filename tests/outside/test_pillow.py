"""Pillow makes images of tensors, and tensors are made of its images."""
import numpy as np
import pytest
from _same_program import DATA

import ptcore as pt

Image = pytest.importorskip("PIL.Image")
pytestmark = pytest.mark.core

PICTURES = {
    "RGB": DATA["image"], "L": np.arange(12, dtype=np.uint8).reshape(3, 4), "F": np.asarray([[1, 2.5]], np.float32),
    "float64": DATA["m"], "I": np.asarray([[1, 2]], np.int32), "1": DATA["m"] > 2,
    "I;16": np.asarray([[1, 2]], np.uint16), "RGBA": np.arange(16, dtype=np.uint8).reshape(2, 2, 4),
    "a channel": DATA["image"][:, :, 1], "turned": DATA["image"].transpose(1, 0, 2),
}


@pytest.mark.parametrize("name", PICTURES)
def test_images_of_tensors(name):
    data = PICTURES[name]
    tensor = pt.tensor(DATA["image"])
    tensor = {"a channel": tensor[:, :, 1], "turned": tensor.permute(1, 0, 2)}.get(name, pt.tensor(data))
    want, got = Image.fromarray(data), Image.fromarray(tensor)
    assert (got.mode, got.size) == (want.mode, want.size)
    assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "1", "F", "I", "CMYK", "HSV"])
@pytest.mark.parametrize("function", ["tensor", "as_tensor", "asarray"])
def test_tensors_of_images(mode, function):
    image = Image.fromarray(DATA["image"]).convert(mode)
    want, got = np.asarray(image), getattr(pt, function)(image)
    assert np.dtype(got.dtype) == want.dtype
    np.testing.assert_array_equal(got.numpy(), want)


def test_what_cannot_be_an_image():
    with pytest.raises(AttributeError, match=r"__array_interface__.*requires grad"):
        Image.fromarray(pt.zeros(2, 2, requires_grad=True))
    with pytest.raises(AttributeError, match="bfloat16"):
        Image.fromarray(pt.zeros(2, 2, dtype=pt.bfloat16))
