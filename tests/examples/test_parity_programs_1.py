"""Training programs under both libraries, step by step: attention over packed sequences, graphs, experts."""
import pytest
from program_tools import compare, data, trained, weighted, whole

pytestmark = pytest.mark.parity


def sequence_to_sequence(m):
    """A GRU over packed sequences, a decoder of cells that attends to it, padding left out everywhere."""
    nn, F, rnn = m.nn, m.nn.functional, m.nn.utils.rnn

    class Translator(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(11, 6, padding_idx=0)
            self.encoder = nn.GRU(6, 5, num_layers=2, bidirectional=True, batch_first=True)
            self.cell, self.query = nn.LSTMCell(16, 5), nn.Linear(5, 10, bias=False)
            self.out = nn.Linear(15, 11)

        def forward(self, source, lengths, target):
            packed = rnn.pack_padded_sequence(self.words(source), lengths, batch_first=True, enforce_sorted=False)
            states, last = self.encoder(packed)
            states, lengths = rnn.pad_packed_sequence(states, batch_first=True)
            h = last.view(2, 2, -1, 5)[-1].mean(0)
            c, context, found = m.zeros_like(h), states.new_zeros(len(source), 10), []
            hidden = m.arange(states.size(1))[None, :] >= lengths[:, None]
            for t in range(target.size(1)):
                h, c = self.cell(m.cat([self.words(target[:, t]), context], -1), (h, c))
                score = m.einsum("bd,btd->bt", self.query(h), states).masked_fill(hidden, float("-inf"))
                context = (score.softmax(-1).unsqueeze(1) @ states).squeeze(1)
                found.append(self.out(m.cat([h, context], -1)))
            return m.stack(found, 1), last

    net, lengths = weighted(m, Translator()), m.tensor([4, 6, 2])
    source = (whole(m, 10, 3, 6) + 1).masked_fill(m.arange(6)[None] >= lengths[:, None], 0)
    target = whole(m, 11, 3, 5)

    def loss(step):
        out, last = net(source, lengths, target)
        likelihood = F.log_softmax(out[:, :-1].reshape(-1, 11), -1)
        return F.nll_loss(likelihood, target[:, 1:].flatten(), ignore_index=0) + last.abs().mean()
    found = trained(net.parameters(), m.optim.AdamW(net.parameters(), lr=0.01), loss)
    return [*found, nn.utils.clip_grad_norm_(net.parameters(), 0.5), [p.grad for p in net.parameters()]]


def graph_attention(m):
    """Messages along edges, a softmax over each node's edges made of scatter and index_add."""
    nn, F = m.nn, m.nn.functional
    i, j = whole(m, 6, 15), whole(m, 6, 15, seed=2)
    x, y = data(m, 6, 4), whole(m, 3, 6)

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.outer = nn.Linear(4, 5), nn.Linear(5, 3)
            self.score = nn.Parameter(m.zeros(10))

        def forward(self, x):
            h = self.inner(x)
            e = F.leaky_relu(m.cat([h[i], h[j]], -1) @ self.score, 0.2)
            top = m.full((6,), -1e9, dtype=h.dtype).scatter_reduce(0, j, e, "amax", include_self=True)
            w = (e - top[j]).exp()
            w = w / m.zeros(6, dtype=h.dtype).index_add(0, j, w)[j]
            h = m.zeros_like(h).index_add_(0, j, h[i] * w[:, None]).relu()
            degree = m.bincount(j, minlength=6).clamp(min=1).double()
            mean = m.zeros_like(h).scatter_add_(0, j[:, None].expand(-1, 5), h[i]) / degree[:, None]
            same = m.zeros_like(h).scatter_reduce_(0, j[:, None].expand_as(h[i]), h[i], "mean", include_self=False)
            return self.outer(h + mean + same)

    net = weighted(m, Attention())
    optimizer = m.optim.Adagrad(net.parameters(), lr=0.1, lr_decay=0.01)
    return trained(net.parameters(), optimizer, lambda step: F.cross_entropy(net(x), y))


def mixture_of_experts(m):
    """Rows are sent to their two best experts and gathered again; the load is balanced by a second loss."""
    nn, F = m.nn, m.nn.functional

    class Mixture(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(5, 4)
            self.experts = nn.ModuleList([nn.Sequential(nn.Linear(5, 6), nn.GELU(), nn.Linear(6, 5)) for _ in range(4)])

        def forward(self, x):
            scores = self.gate(x)
            weight, chosen = scores.topk(2, dim=-1)
            weight, out = weight.softmax(-1), m.zeros_like(x)
            for k, expert in enumerate(self.experts):
                row, place = m.where(chosen == k)
                if row.numel():
                    out.index_add_(0, row, expert(x[row]) * weight[row, place, None])
            load = F.one_hot(chosen[:, 0], 4).double().mean(0)
            return out, 4 * (load * scores.softmax(-1).mean(0)).sum()

    net, x = weighted(m, Mixture()), data(m, 9, 5)

    def loss(step):
        out, balance = net(x)
        return F.huber_loss(out, x.flip(1), delta=0.7) + 0.1 * balance
    return trained(net.parameters(), m.optim.AdamW(net.parameters(), lr=0.02), loss)


@pytest.mark.parametrize("program", [sequence_to_sequence, graph_attention, mixture_of_experts])
def test_program(program):
    compare(program)
