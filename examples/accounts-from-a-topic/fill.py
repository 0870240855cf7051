"""Prints a connector file with its ${VARIABLES} filled in from the environment."""

import json
import os
import sys
from pathlib import Path
from string import Template


def filled(value):
    """Every text in a JSON value with its variables replaced; values with quotes stay one text."""
    if isinstance(value, dict):
        return {name: filled(inner) for name, inner in value.items()}
    return Template(value).substitute(os.environ) if isinstance(value, str) else value


try:
    print(json.dumps(filled(json.loads(Path(sys.argv[1]).read_text()))))
except KeyError as error:
    sys.exit(f"set the variable {error.args[0]}")
