"""Rewrite ``docs/results.md``, its figures and tables from the run records: ``python -m mse_fast.results``.

Every number comes from a file of ``results/``::

    *.json                 one evaluation each: ``python -m mse_fast.evaluate NAME --json results/NAME.json``
    trials.toml            what was tried before each of them
    curves/*.json          how runs learned: ``python -m mse_fast.results --keep-curve RUN``
    ablation/GROUP/*.json  what one change does: ``python -m mse_fast.evaluate RUN --label TEXT --json FILE``
    recipe/*.json          the same, for the table of ``docs/recipe.md``
    paper.toml             what the paper reports
    notes.md               what we say about it: the one part of the page that is written by hand
"""
