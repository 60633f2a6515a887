"""Batch samplers of the matrix tasks; ``mse_ref.tasks.matrix`` says what an instance means."""

import torch
from torch import Generator, Tensor

from mse_fast.tasks import Task
from mse_ref.tasks import SPECS
from mse_ref.tasks.matrix import LETTERS, XOR_FILL


class Transpose(Task):
    """Rectangles of random letters, and the same with rows and columns swapped."""

    spec = SPECS["transpose"]

    def sample(self, batch: int, n: int, generator: Generator) -> tuple[Tensor, Tensor]:
        self.check_request(batch, n)
        tokens, _ = random_rectangles(batch, n, generator)
        return tokens, tokens.mT.contiguous()


class Rotate90(Task):
    """Rectangles of random letters, and the same turned counter-clockwise."""

    spec = SPECS["rotate90"]

    def sample(self, batch: int, n: int, generator: Generator) -> tuple[Tensor, Tensor]:
        self.check_request(batch, n)
        tokens, columns = random_rectangles(batch, n, generator)
        # Row i of the answer is column (columns - 1 - i) of the question: flip the transposed rows.
        row = columns[:, None] - 1 - torch.arange(n, device=tokens.device)  # [B, n]; negative in the padding
        flipped = tokens.mT.gather(1, row.clamp(min=0)[:, :, None].expand(-1, -1, n))
        return tokens, flipped * (row >= 0)[:, :, None]


class Xor(Task):
    """Two random binary matrices side by side, and where they differ."""

    spec = SPECS["xor"]

    def sample(self, batch: int, n: int, generator: Generator) -> tuple[Tensor, Tensor]:
        self.check_request(batch, n)
        rows, columns = self.sides(batch, n, generator)
        bits = torch.randint(0, 2, (batch, n, n), generator=generator, device=generator.device)
        inside = corner(rows, 2 * columns + 1, n)
        answered = corner(rows, torch.minimum(columns, n - 1 - columns), n)  # as far as B reaches
        place = torch.arange(n, device=bits.device)
        separator = (place == columns[:, None])[:, None, :]  # [B, 1, n]
        tokens = torch.where(separator, 1, bits + 2) * inside
        partner = (place + columns[:, None] + 1).clamp(max=n - 1)  # [B, n]; the column of B that meets column c of A
        other = bits.gather(2, partner[:, None, :].expand(-1, n, -1))
        return tokens, (1 + (bits ^ other)) * answered

    def sides(self, batch: int, n: int, generator: Generator) -> tuple[Tensor, Tensor]:
        """Rows and columns of the first matrix, [B] each: binomial, so large matrices are nearly all of one shape."""
        rows = binomial(batch, n, XOR_FILL, generator).clamp(min=1)
        return rows, binomial(batch, (n - 1) // 2, XOR_FILL, generator).clamp(min=1)


class WideXor(Xor):
    """The same task, but training sees every distance a side has room for; an evaluation draws as ``Xor`` does.

    The partner of a bit stands ``width + 1`` columns away. At side 32, nearly all widths of Xor's own matrices lie
    between 7 and 14: few distances, and none with the fifth binary digit, to show a network what to do with another
    one. Here the first matrix may have any width up to n - 2. Where the second no longer fits, it is cut off at the
    edge, and bits without a partner have no answer (label 0).
    """

    def sides(self, batch: int, n: int, generator: Generator) -> tuple[Tensor, Tensor]:
        if not self.training:
            return super().sides(batch, n, generator)
        bounds = torch.tensor([[n], [n - 2]], device=generator.device).expand(2, batch)
        rows, columns = 1 + integers_below(bounds, generator)
        return rows, columns


class Squaring(Task):
    """Random binary squares, and their products with themselves modulo 2."""

    spec = SPECS["squaring"]

    def sample(self, batch: int, n: int, generator: Generator) -> tuple[Tensor, Tensor]:
        self.check_request(batch, n)
        side = random_sides(batch, n, generator)
        inside = corner(side, side, n)
        bits = self.bits(batch, n, generator) * inside
        return (bits + 1) * inside, (count_paths(bits) % 2 + 1) * inside

    def bits(self, batch: int, n: int, generator: Generator) -> Tensor:
        """Fair coins, [B, n, n]."""
        return torch.randint(0, 2, (batch, n, n), generator=generator, device=generator.device)


class SparseSquaring(Squaring):
    """The same task, but training sees matrices of every share of ones up to one half.

    A bit of the answer is the parity of n products. With fair coins a product is 1 in a quarter of all cases, and
    the answer agrees with any single product hardly more often than by chance: their correlation falls as 2**-n, and
    no gradient shows which cells belong together. In a matrix of few ones most sums have one term or none, and it does.
    """

    def bits(self, batch: int, n: int, generator: Generator) -> Tensor:
        if not self.training:
            return super().bits(batch, n, generator)
        share, drawn = (
            torch.rand(shape, generator=generator, device=generator.device) for shape in ((batch, 1, 1), (batch, n, n))
        )
        return (drawn < share / 2).long()


def random_rectangles(batch: int, n: int, generator: Generator) -> tuple[Tensor, Tensor]:
    """Letters in the top-left corner [B, n, n], and how many columns each rectangle has [B]."""
    rows, columns = random_sides(2 * batch, n, generator).view(2, batch)
    letters = torch.randint(1, LETTERS + 1, (batch, n, n), generator=generator, device=generator.device)
    return letters * corner(rows, columns, n), columns


def random_sides(count: int, n: int, generator: Generator) -> Tensor:
    """Sides uniform in [lo, n] where a coin sets lo to 1 or n/2, [count]."""
    coin = torch.randint(0, 2, (count,), generator=generator, device=generator.device)
    lo = 1 + coin * (max(1, n // 2) - 1)
    return lo + integers_below(n + 1 - lo, generator)


def integers_below(bounds: Tensor, generator: Generator) -> Tensor:
    """An integer uniform in 0 … bound-1 for every bound, in their shape."""
    drawn = torch.rand(bounds.shape, generator=generator, device=generator.device) * bounds
    return torch.minimum(drawn.long(), bounds - 1)  # the product can round up to the bound itself


def binomial(batch: int, count: int, probability: float, generator: Generator) -> Tensor:
    """Successes among ``count`` tries, [B]."""
    tries = torch.rand(batch, count, generator=generator, device=generator.device)
    return (tries < probability).sum(1)  # [B, count] -> [B]


def corner(rows: Tensor, columns: Tensor, n: int) -> Tensor:
    """True in the top-left corner of rows × columns cells, [B, n, n]."""
    place = torch.arange(n, device=rows.device)
    return (place < rows[:, None])[:, :, None] & (place < columns[:, None])[:, None, :]


def count_paths(adjacency: Tensor) -> Tensor:
    """The matrix product of 0/1 matrices with themselves, as exact integers [B, n, n]."""
    with torch.autocast(adjacency.device.type, enabled=False):  # bfloat16 would round the counts
        values = adjacency.float()  # float32 counts exactly to 2**24
        return (values @ values).long()
