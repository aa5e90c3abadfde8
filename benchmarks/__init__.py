"""One command a claim: `python -m benchmarks NAME`. Each prints a ratio against what people would use instead."""
