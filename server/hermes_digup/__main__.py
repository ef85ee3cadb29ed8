"""`python -m hermes_digup` is the command line."""

from __future__ import annotations

from hermes_digup.cli import main

raise SystemExit(main())
