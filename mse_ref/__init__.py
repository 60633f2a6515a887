"""Matrix Shuffle-Exchange networks in NumPy."""
