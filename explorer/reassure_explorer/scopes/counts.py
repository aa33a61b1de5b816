"""Golden numbers: distinct states, steps and depth of the standard scopes, to their end.

A changed number is a changed model. Tests pin the quick ones, `benchmarks/explorer_counts.py` all.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

Counts = tuple[int, int, int]

COUNTS: Final[Mapping[tuple[str, str], Counts]] = MappingProxyType(
    {
        ("small", "kip-236"): (17_507, 57_628, 24),
        ("small", "kip-236-amended"): (18_304, 59_904, 24),
        ("new", "kip-236"): (18_886, 65_618, 27),
        ("new", "kip-236-amended"): (19_237, 66_684, 27),
        ("routes", "kip-236"): (51_839, 196_603, 26),
        ("routes", "kip-236-amended"): (52_728, 199_416, 26),
        ("min-two", "kip-236"): (21_197, 71_272, 24),
        ("min-two", "kip-236-amended"): (15_231, 51_394, 24),
        ("two-partitions", "kip-236"): (270_281, 1_021_831, 29),
        ("two-partitions", "kip-236-amended"): (265_001, 1_005_435, 29),
        ("medium", "kip-236"): (875_631, 3_897_938, 46),
        ("medium", "kip-236-amended"): (871_178, 3_890_003, 40),
        ("large", "kip-236"): (135_112_004, 832_646_292, 63),
        ("restless", "kip-236"): (14_062, 44_954, 24),
        ("restless", "kip-236-amended"): (13_760, 44_328, 24),
        ("restless-requests", "kip-236"): (1_364, 4_379, 15),
        ("restless-requests", "kip-236-amended"): (1_364, 4_379, 15),
        ("logs", "kafka-4485"): (6_012, 21_874, 17),
        ("logs", "kip-236-amended"): (4_996, 17_867, 16),
        ("logs-again", "kafka-4485"): (25_180, 93_128, 21),
        ("logs-again", "kip-236-amended"): (20_001, 72_784, 19),
        ("logs-three", "kafka-4485"): (4_031_797, 24_381_950, 30),
        ("logs-three", "kip-236-amended"): (2_272_917, 13_430_493, 30),
        ("logs-elections", "kafka-4485"): (1_881_793, 9_505_111, 33),
        ("logs-elections", "kip-236-amended"): (1_586_060, 7_907_742, 27),
        ("promises", "kip-236"): (19_759, 60_898, 24),
        ("promises", "kip-236-amended"): (18_809, 58_186, 23),
        ("promises-four", "kip-236"): (61_611, 205_433, 32),
        ("promises-four", "kip-236-amended"): (58_760, 198_354, 30),
        ("promises-calm", "kip-236"): (10_705, 15_926, 27),
        ("promises-calm", "kip-236-amended"): (8_661, 13_480, 27),
        ("promises-growth", "kip-236"): (23_531, 68_490, 25),
        ("promises-growth", "kip-236-amended"): (23_348, 68_507, 25),
        ("promises-one", "kip-236"): (18_662, 63_950, 27),
        ("promises-one", "kip-236-amended"): (19_138, 65_334, 26),
        ("promises-min-two", "kip-236"): (28_470, 89_872, 26),
        ("promises-min-two", "kip-236-amended"): (18_855, 60_332, 26),
        ("promises-chain", "kip-236"): (37_706, 120_590, 31),
        ("promises-chain", "kip-236-amended"): (38_101, 121_606, 31),
        ("moves", "kafka-42"): (1_507, 4_463, 19),
        ("moves", "kip-236-amended"): (1_582, 5_190, 18),
        ("moves-growth", "kafka-42"): (4_673, 14_464, 26),
        ("moves-growth", "kip-236-amended"): (3_497, 11_621, 25),
        ("moves-failover", "kafka-42"): (2_031, 5_376, 22),
        ("moves-failover", "kip-236-amended"): (2_611, 8_349, 24),
        ("moves-medium", "kafka-42"): (239_066, 835_366, 34),
        ("moves-medium", "kip-236-amended"): (138_082, 576_634, 36),
        ("shipped", "kafka-zk"): (67_373, 205_276, 37),
        ("shipped", "kip-236-amended"): (67_373, 205_276, 37),
        ("shipped-change", "kafka-zk"): (1_343, 3_329, 26),
        ("shipped-change", "kip-236-amended"): (1_343, 3_329, 26),
        ("shipped-medium", "kafka-zk"): (489_817, 1_702_164, 46),
        ("shipped-medium", "kip-236-amended"): (489_817, 1_702_164, 46),
        ("healing", "kip-46"): (5_513, 22_950, 29),
        ("healing", "kip-236-amended"): (5_513, 22_950, 29),
        ("healing-promises", "kip-46"): (5_513, 22_950, 29),
        ("healing-promises", "kip-236-amended"): (5_513, 22_950, 29),
        ("healing-medium", "kip-46"): (41_254, 205_568, 38),
        ("healing-medium", "kip-236-amended"): (41_254, 205_568, 38),
        ("old-znode", "kip-236-legacy"): (3_424, 8_568, 25),
        ("old-znode", "kip-236-amended"): (3_424, 8_568, 25),
        ("old-znode-promises", "kip-236-legacy"): (3_424, 8_568, 25),
        ("old-znode-promises", "kip-236-amended"): (3_424, 8_568, 25),
        ("old-znode-two", "kip-236-legacy"): (28_501, 69_379, 44),
        ("old-znode-two", "kip-236-amended"): (28_501, 69_379, 44),
        ("old-znode-medium", "kip-236-legacy"): (43_386, 142_319, 35),
        ("old-znode-medium", "kip-236-amended"): (43_885, 143_528, 35),
    }
)
"""By scope and profile."""
