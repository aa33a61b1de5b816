"""What the tests of the proofs share is found by name: planting, claim_proofs, operators."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
