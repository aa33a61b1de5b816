"""What the tests of the proofs share is found by its name: `planting`, `proving`, `rules`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
