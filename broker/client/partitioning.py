"""Which partition a record goes to: as Java's default partitioner, over whole columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

__all__ = ["murmur2", "partitions_for"]

_SEED = 0x9747B28C
_M = 0x5BD1E995


def murmur2(keys: pa.Array) -> NDArray[np.uint32]:
    """The 32-bit murmur2 hash of each key, as Kafka's ``Utils.murmur2``; what a null hashes to has no meaning.

    Keys of one length are hashed together, so the work in Python grows with the lengths there are and not with the rows.
    """
    import numpy as np
    import pyarrow as pa

    flat = keys.cast(pa.large_binary())
    offsets = np.frombuffer(flat.buffers()[1], np.int64)[flat.offset : flat.offset + len(flat) + 1]
    data = np.frombuffer(flat.buffers()[2], np.uint8) if flat.buffers()[2] is not None else np.zeros(0, np.uint8)
    lengths = np.diff(offsets)
    hashes = np.zeros(len(flat), np.uint32)
    for length in np.unique(lengths).tolist():
        rows = np.flatnonzero(lengths == length)
        matrix = data[offsets[rows][:, None] + np.arange(length)]
        hashes[rows] = _hash_matrix(matrix, length)
    return hashes


def _hash_matrix(matrix: NDArray[np.uint8], length: int) -> NDArray[np.uint32]:
    import numpy as np

    whole = length // 4
    words = np.ascontiguousarray(matrix[:, : whole * 4]).view("<u4")
    hashes = np.full(len(matrix), _SEED ^ length, np.uint32)
    factor: Any = np.uint32(_M)
    for position in range(whole):
        word = words[:, position] * factor
        word ^= word >> np.uint32(24)
        hashes = (hashes * factor) ^ (word * factor)
    rest = matrix[:, whole * 4 :].astype(np.uint32)
    for position in range(rest.shape[1]):
        hashes ^= rest[:, position] << np.uint32(8 * position)
    if rest.shape[1]:
        hashes *= factor
    hashes ^= hashes >> np.uint32(13)
    hashes *= factor
    hashes ^= hashes >> np.uint32(15)
    return hashes


def partitions_for(
    keys: pa.Array | None, preset: pa.Array | None, rows: int, count: int, sticky: int | NDArray[np.int64]
) -> NDArray[np.int32]:
    """The partition of each row: the partition that it names, else by its key, else ``sticky``, for all rows or for each."""
    import numpy as np
    import pyarrow.compute as pc

    chosen = np.full(rows, sticky % count, np.int32)
    if keys is not None and count > 1:
        by_key = ((murmur2(keys) & np.uint32(0x7FFFFFFF)) % np.uint32(count)).astype(np.int32)
        chosen = np.where(keys.is_valid().to_numpy(zero_copy_only=False), by_key, chosen)
    if preset is not None:
        named = pc.fill_null(preset, -1).to_numpy(zero_copy_only=False)
        chosen = np.where(named >= 0, named, chosen).astype(np.int32)
    return chosen
