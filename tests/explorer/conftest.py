"""Lets the tests of the explorer share their toys."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
