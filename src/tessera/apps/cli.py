"""The process behind the `tessera` command."""

from tessera.cli.group import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
