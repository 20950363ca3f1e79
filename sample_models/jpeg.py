"""How does a JPEG from an untrusted client become the pixels that a network takes?"""

from __future__ import annotations

import base64
import binascii
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from perfkit.serving.server.model import InputRefused

_JPEG_BEGINS = b"\xff\xd8"  # the marker "start of image"
MAX_PIXELS = 24_000_000  # what phones take by default; 72 MB once decoded
# Mean and deviation of each colour over ImageNet, the usual scale of inputs to such networks.
_MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32)
_DEVIATION = np.array([0.229, 0.224, 0.225], dtype=np.float32)


def jpeg_bytes(payload: Any) -> bytes:
    """The file inside a payload: a base64 string, {"b64": string}, or the bytes; raises InputRefused for others."""
    if isinstance(payload, bytes):
        return payload
    text = payload.get("b64") if isinstance(payload, dict) else payload
    if not isinstance(text, str):
        raise InputRefused(f'the input is of type {type(payload).__name__}; send a JPEG in base64, or {{"b64": …}}')
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InputRefused(f"the input is not base64 ({error}); send a JPEG in base64") from error


def file_or_text(element: bytes) -> bytes | str:
    """The payload in an element of a BYTES tensor: a JPEG as it is or, since JSON holds none, in base64."""
    return element if element.startswith(_JPEG_BEGINS) else element.decode("latin-1")


def example_jpeg() -> str:
    """A small picture, from black at the top to white at the bottom, as a payload."""
    file = io.BytesIO()
    Image.linear_gradient("L").convert("RGB").save(file, "JPEG")
    return base64.b64encode(file.getvalue()).decode("ascii")


def decode_jpeg(content: bytes, side: int) -> NDArray[np.float32]:
    """Decode, shrink the shorter edge to `side`, crop the middle: normalised float32 (3, side, side)."""
    try:
        image = Image.open(io.BytesIO(content), formats=("JPEG",))
    except Image.DecompressionBombError as error:
        raise InputRefused(f"the picture is too large ({error}); at most {MAX_PIXELS} pixels are allowed") from error
    except (UnidentifiedImageError, OSError, SyntaxError) as error:
        raise InputRefused(f"the {len(content)} bytes are not a JPEG; send one, other formats are not read") from error
    with image:
        _check_pixels(image)
        return _normalised(_square(image, side))


def _check_pixels(image: Image.Image) -> None:
    """Refuse by the header's width and height, before a pixel is decoded."""
    if image.width * image.height > MAX_PIXELS:
        size = f"{image.width} x {image.height}"
        raise InputRefused(f"the picture has {size} pixels; at most {MAX_PIXELS} in all are allowed, shrink it")


def _square(image: Image.Image, side: int) -> Image.Image:
    ratio = side / min(image.size)
    try:
        # The decoder itself can halve a large picture, which costs far less than decoding all of it.
        image.draft("RGB", (round(image.width * ratio), round(image.height * ratio)))
        colours = image.convert("RGB")
    except (OSError, SyntaxError) as error:
        raise InputRefused(f"the JPEG is cut off or damaged ({error}); send the whole file") from error
    edge = min(colours.size)
    left, top = (colours.width - edge) // 2, (colours.height - edge) // 2
    box = (left, top, left + edge, top + edge)
    return colours.resize((side, side), Image.Resampling.BILINEAR, box=box)


def _normalised(image: Image.Image) -> NDArray[np.float32]:
    pixels = np.asarray(image, dtype=np.float32) / np.float32(255)
    return np.ascontiguousarray(((pixels - _MEAN) / _DEVIATION).transpose(2, 0, 1))
