"""What a person meets when an image cannot be made."""

from tessera.errors import TesseraError


class ImageFailed(TesseraError):
    """An image, or a part of it, cannot be made from what is there."""

    code = "ImageFailed"
