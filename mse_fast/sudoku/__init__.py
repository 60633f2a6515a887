"""Puzzles: read them, solve them exactly, make them, and move them by their symmetries.

    reader.py     files of puzzles -> arrays
    exact.py      all solutions by search with bit masks, compiled by numba
    generator.py  random puzzles with exactly one solution
    symmetry.py   the 9!·(3!)⁸·2 symmetries, on whole batches of grids in torch
    report.py     solved puzzles per number of givens, and the table of neural solvers

The rules themselves are written down in ``mse_ref.tasks.sudoku``.
"""
