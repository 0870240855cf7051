"""``python -m tidegate.cli`` is ``tidegate``: how the supervisor starts its children."""

from tidegate.cli import main

if __name__ == "__main__":
    main()
