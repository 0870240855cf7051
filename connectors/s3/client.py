"""S3 as a store, through pyarrow's client."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from connect.api import ConnectError, RetriableConnectError, TopicPartition
from connectors.objects.store import Finished, Mark, Store
from connectors.s3.config import S3SinkConfig

__all__ = ["S3Store"]

_BLOCK_BYTES: Final = 8 * 1024 * 1024
_TIMEOUT_S: Final = 60
_FOR_GOOD: Final = re.compile(
    r"ACCESS_DENIED|NO_SUCH_BUCKET|INVALID_ACCESS_KEY|SIGNATURE|UNRECOGNIZED_CLIENT|InvalidAccessKeyId|NoSuchBucket|"
    r"AccessDenied|PermanentRedirect|HTTP status 40[034]",
    re.IGNORECASE,
)


class S3Store(Store):
    """Objects of one bucket. An upload becomes visible as a whole when it completes."""

    def __init__(self, config: S3SinkConfig) -> None:
        self._config = config
        self._files = _file_system(config)

    def commit(self, partition: TopicPartition, files: Sequence[Finished], mark: Mark) -> None:
        del partition, mark  # names hold them; the group has the offset
        for finished in files:
            self._upload(finished)

    def _upload(self, finished: Finished) -> None:
        name = f"{self._config.bucket}/{finished.name}"
        metadata = {"ACL": self._config.acl} if self._config.acl else None
        try:
            with (
                finished.path.open("rb") as source,
                self._files.open_output_stream(name, compression=None, metadata=metadata) as target,
            ):
                while block := source.read(_BLOCK_BYTES):
                    target.write(block)
        except OSError as error:
            said = f"cannot write s3://{name}: {_reason(error)}"
            if _FOR_GOOD.search(said):
                raise ConnectError(said) from error
            raise RetriableConnectError(said) from error


def _reason(error: OSError) -> str:
    """The server's words out of what pyarrow makes of them."""
    text = str(error)
    found = re.search(r"AWS Error .*", text, re.DOTALL)
    return (found[0] if found else text).splitlines()[0]


def _file_system(config: S3SinkConfig) -> Any:
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem

    address: dict[str, Any] = {}
    if config.url:
        parts = urlsplit(config.url)
        address = {"scheme": parts.scheme, "endpoint_override": f"{parts.netloc}{parts.path.rstrip('/')}"}
        address["force_virtual_addressing"] = not config.path_style
    if config.access_key:
        address |= {"access_key": config.access_key, "secret_key": config.secret_key.reveal()}
    return S3FileSystem(
        region=config.region,
        connect_timeout=_TIMEOUT_S,
        request_timeout=_TIMEOUT_S,
        retry_strategy=AwsStandardS3RetryStrategy(max_attempts=config.retries + 1),
        background_writes=False,
        **address,
    )
