"""The compression codecs of record batches, by Kafka's numbers; the library behind them is imported with the first use."""

from __future__ import annotations

import contextlib
import mmap
import struct
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from broker.errors import CorruptMessage, UnsupportedCompressionType

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["MAX_DECOMPRESSED", "Codec", "compress", "decompress"]

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = struct.pack(">8sii", _XERIAL_MAGIC, 1, 1)
_XERIAL_BLOCK: Final = 32 * 1024
_LENGTH: Final = struct.Struct(">i")
_USUAL_RATIO: Final = 16
_USUAL_SIZE: Final = 64 * 1024

MAX_DECOMPRESSED: Final = 128 * 1024 * 1024
"""Bytes that one batch may decompress to where the broker has to look into it."""


class Codec(IntEnum):
    """The lowest three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def _cramjam() -> ModuleType:
    import cramjam

    return cramjam


def compress(codec: Codec, data: bytes, level: int | None = None) -> bytes:
    """Compress as Kafka's Java client does: snappy in xerial's framing, lz4 in frames. ``level`` None is the codec's own."""
    if codec is Codec.NONE:
        return data
    cramjam = _cramjam()
    if codec is Codec.SNAPPY:
        blocks = [data[start : start + _XERIAL_BLOCK] for start in range(0, len(data), _XERIAL_BLOCK)]
        packed = [bytes(cramjam.snappy.compress_raw(block)) for block in blocks]
        return _XERIAL_HEADER + b"".join(_LENGTH.pack(len(block)) + block for block in packed)
    if codec is Codec.LZ4:
        return _lz4(cramjam, data, level)
    module = {Codec.GZIP: cramjam.gzip, Codec.ZSTD: cramjam.zstd}[codec]
    return bytes(module.compress(data) if level is None else module.compress(data, level=level))


def _lz4(cramjam: ModuleType, data: bytes, level: int | None) -> bytes:
    """A frame of independent blocks: Java's reader refuses linked ones, which cramjam's one-shot function writes."""
    options = {} if level is None else {"level": level}
    compressor = cramjam.lz4.Compressor(content_checksum=False, block_linked=False, **options)
    compressor.compress(data)
    return bytes(compressor.finish())


def decompress(codec: int, data: bytes | memoryview) -> bytes | memoryview:
    """The records of a batch, at most ``MAX_DECOMPRESSED`` bytes: a small batch must not fill the memory.

    Raises UnsupportedCompressionType for a number that is no codec, CorruptMessage for data that is bad or grows beyond that.
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
            return _unsnappy(cramjam, bytes(data))
        module = {Codec.GZIP: cramjam.gzip, Codec.LZ4: cramjam.lz4, Codec.ZSTD: cramjam.zstd}[known]
        return _unpacked(module, cramjam.DecompressionError, bytes(data))
    except (cramjam.DecompressionError, struct.error) as error:
        raise CorruptMessage(f"the records of a batch are not valid {known.name.lower()} data: {error}") from error


def _unpacked(module: ModuleType, error_class: type[Exception], data: bytes) -> bytes:
    """Into a buffer of the usual size; if that does not do, into the largest allowed, whose pages cost only when used."""
    usual = min(max(_USUAL_RATIO * len(data), _USUAL_SIZE), MAX_DECOMPRESSED)
    with contextlib.suppress(error_class):
        buffer = bytearray(usual)
        return bytes(memoryview(buffer)[: module.decompress_into(data, buffer)])
    with mmap.mmap(-1, MAX_DECOMPRESSED) as largest:
        return largest[: module.decompress_into(data, largest)]


def _unsnappy(cramjam: ModuleType, data: bytes) -> bytes:
    """Either one raw block (librdkafka and others) or xerial's sequence of blocks with lengths (the Java client)."""
    if not data.startswith(_XERIAL_MAGIC):
        return _unsnappy_block(cramjam, data, MAX_DECOMPRESSED)
    blocks = []
    position, left = len(_XERIAL_HEADER), MAX_DECOMPRESSED
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
            f"a snappy block of {len(block)} bytes would become {size}; a batch may have {MAX_DECOMPRESSED}"
        )
    return bytes(cramjam.snappy.decompress_raw(block))
