"""What the tests of the proofs share, `planting`, `claim_proofs` and `operators`, is found by name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
