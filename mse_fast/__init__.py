"""Matrix Shuffle-Exchange networks in PyTorch."""
