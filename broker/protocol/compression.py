"""The compression codecs of record batches, by Kafka's numbers. Their library is imported on first use."""

from __future__ import annotations

import contextlib
import mmap
import struct
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from broker.errors import CorruptMessage, UnsupportedCompressionType
from broker.work import MOST_UNPACKED_BYTES, Allowance, TooMuchWork

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["Codec", "compress", "decompress", "decompress_within", "most_unpacked"]

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = struct.pack(">8sii", _XERIAL_MAGIC, 1, 1)
_XERIAL_BLOCK: Final = 32 * 1024
_LENGTH: Final = struct.Struct(">i")
_USUAL_RATIO: Final = 16
_USUAL_SIZE: Final = 64 * 1024
_LZ4_FAST: Final = 1
"""The level where none is given: cramjam's own default is lz4's slow compressor, a tenth as fast."""
_PACKED_AT_ONCE: Final = 1024 * 1024


class Codec(IntEnum):
    """The lowest three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


_LARGEST_RATIO: Final = {
    Codec.NONE: 1,
    Codec.GZIP: 1032,  # RFC 1951: two bits for 258 bytes
    Codec.SNAPPY: 22,  # three bytes for 64 bytes
    Codec.LZ4: 256,  # one byte for 255
    Codec.ZSTD: 32 * 1024,  # RFC 8878: four bytes for a block of 128 KiB
}


def most_unpacked(codec: int, size: int) -> int:
    """An upper bound of the size that ``size`` bytes can decompress to; 0 for an unknown codec."""
    return size * _LARGEST_RATIO[Codec(codec)] if codec in _LARGEST_RATIO else 0


def _cramjam() -> ModuleType:
    import cramjam

    return cramjam


def compress(
    codec: Codec, data: bytes | memoryview, level: int | None = None, allowance: Allowance | None = None
) -> bytes:
    """Compress as Kafka's Java client does: snappy in xerial's framing, lz4 in frames. ``level`` None is the codec's
    default.

    An ``allowance`` is spent in small steps. Raises TooMuchWork.
    """
    if codec is Codec.NONE:
        return bytes(data)
    cramjam = _cramjam()
    if codec is Codec.SNAPPY:
        out = bytearray(_XERIAL_HEADER)
        for start in range(0, len(data), _XERIAL_BLOCK):
            if allowance is not None:
                allowance.spend(packed_bytes=_XERIAL_BLOCK)
            block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK]))
            out += _LENGTH.pack(len(block))
            out += block
        return bytes(out)
    if allowance is None and codec is not Codec.LZ4:
        module = {Codec.GZIP: cramjam.gzip, Codec.ZSTD: cramjam.zstd}[codec]
        return bytes(module.compress(data) if level is None else module.compress(data, level=level))
    compressor = _compressor(cramjam, codec, level)
    for start in range(0, len(data), _PACKED_AT_ONCE):
        part = data[start : start + _PACKED_AT_ONCE]
        if allowance is not None:
            allowance.spend(packed_bytes=len(part))
        compressor.compress(part)
    return bytes(compressor.finish())


def _compressor(cramjam: ModuleType, codec: Codec, level: int | None) -> Any:
    options: dict[str, Any] = {} if level is None else {"level": level}
    if codec is Codec.LZ4:
        options = {"level": _LZ4_FAST, **options}
        # A frame of independent blocks: Java's reader refuses linked blocks.
        return cramjam.lz4.Compressor(content_checksum=False, block_linked=False, **options)
    return {Codec.GZIP: cramjam.gzip, Codec.ZSTD: cramjam.zstd}[codec].Compressor(**options)


def decompress(codec: int, data: bytes | memoryview, most: int = MOST_UNPACKED_BYTES) -> bytes | memoryview:
    """Decompress the records of a batch to at most ``most`` bytes, so that a small batch can't exhaust memory.

    Raises UnsupportedCompressionType for an unknown codec number, CorruptMessage for invalid or larger data.
    """
    if codec == Codec.NONE:
        return data
    try:
        known = Codec(codec)
    except ValueError:
        raise UnsupportedCompressionType(
            f"compression codec {codec} is none of 0 to 4 (none, gzip, snappy, lz4, zstd)"
        ) from None
    cramjam = _cramjam()
    try:
        if known is Codec.SNAPPY:
            return _unsnappy(cramjam, bytes(data), most)
        module = {Codec.GZIP: cramjam.gzip, Codec.LZ4: cramjam.lz4, Codec.ZSTD: cramjam.zstd}[known]
        return _unpacked(module, cramjam.DecompressionError, bytes(data), most)
    except (cramjam.DecompressionError, struct.error) as error:
        raise CorruptMessage(f"the records of a batch are not valid {known.name.lower()} data: {error}") from error


def decompress_within(codec: int, data: bytes | memoryview, allowance: Allowance) -> bytes | memoryview:
    """Like ``decompress`` within an allowance. Raises TooMuchWork if that is not enough or might not be."""
    if codec == Codec.NONE and len(data) > allowance.unpacked_bytes:
        raise TooMuchWork
    try:
        return decompress(codec, data, allowance.unpacked_bytes)
    except CorruptMessage:
        if allowance.unpacked_bytes < MOST_UNPACKED_BYTES:
            raise TooMuchWork from None  # or it is corrupt: a larger allowance will tell
        raise


def _unpacked(module: ModuleType, error_class: type[Exception], data: bytes, most: int) -> bytes | memoryview:
    """Decompress into a buffer of the usual size, and if that is too small, of the largest allowed one, whose pages
    cost only when used.
    """
    usual = min(max(_USUAL_RATIO * len(data), _USUAL_SIZE), most)
    with contextlib.suppress(error_class):
        buffer = bytearray(usual)
        return bytes(memoryview(buffer)[: module.decompress_into(data, buffer)])
    largest = mmap.mmap(-1, most)
    return memoryview(largest)[: module.decompress_into(data, largest)]


def _unsnappy(cramjam: ModuleType, data: bytes, most: int) -> bytes:
    """Decompress one raw block (librdkafka and others) or xerial's sequence of blocks with lengths (the Java client)."""
    if not data.startswith(_XERIAL_MAGIC):
        return _unsnappy_block(cramjam, data, most)
    blocks = []
    position, left = len(_XERIAL_HEADER), most
    while position < len(data):
        (length,) = _LENGTH.unpack_from(data, position)
        position += _LENGTH.size
        if not 0 <= length <= len(data) - position:
            raise CorruptMessage(f"a snappy block claims {length} bytes where {len(data) - position} are left")
        block = _unsnappy_block(cramjam, data[position : position + length], left)
        blocks.append(block)
        left -= len(block)
        position += length
    return b"".join(blocks)


def _unsnappy_block(cramjam: ModuleType, block: bytes, limit: int) -> bytes:
    size = cramjam.snappy.decompress_raw_len(block)
    if size > limit:
        raise CorruptMessage(
            f"a snappy block of {len(block)} bytes would become {size}; {limit} are left of what a batch may have"
        )
    return bytes(cramjam.snappy.decompress_raw(block))
