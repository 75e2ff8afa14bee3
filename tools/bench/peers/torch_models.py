"""The networks of torch_bench.py, in the form of the tutorials and in the form of an expert ("batched")."""
import torch
import torch.nn.functional as F
from torch import nn


class Encoder(nn.Module):
    def __init__(self, vocab, emb, hidden, layers=1, bidirectional=False, dropout=0.1):
        super().__init__()
        self.embedding = nn.Embedding(vocab, emb)
        self.dropout = nn.Dropout(dropout)
        self.gru = nn.GRU(emb, hidden, layers, batch_first=True, bidirectional=bidirectional)
        self.bidirectional = bidirectional
        self.hidden = hidden

    def forward(self, src):
        out, h = self.gru(self.dropout(self.embedding(src)))
        if self.bidirectional:
            out = out[:, :, :self.hidden] + out[:, :, self.hidden:]
            return out, h[-2] + h[-1]
        return out, h[-1]


class TutorialAttention(nn.Module):
    """score = v . tanh(W [hidden; enc]), softmax over time, context = weights @ enc."""

    def __init__(self, hidden):
        super().__init__()
        self.attn = nn.Linear(2 * hidden, hidden)
        self.v = nn.Linear(hidden, 1, bias=False)

    def forward(self, hidden, enc):
        expanded = hidden.unsqueeze(1).expand(-1, enc.size(1), -1)
        energy = torch.tanh(self.attn(torch.cat((expanded, enc), dim=2)))
        weights = F.softmax(self.v(energy).squeeze(2), dim=1)
        return torch.bmm(weights.unsqueeze(1), enc)          # B x 1 x H


class TutorialDecoder(nn.Module):
    def __init__(self, vocab, emb, hidden, dropout=0.1):
        super().__init__()
        self.embedding = nn.Embedding(vocab, emb)
        self.dropout = nn.Dropout(dropout)
        self.attention = TutorialAttention(hidden)
        self.gru = nn.GRU(emb + hidden, hidden, batch_first=True)
        self.out = nn.Linear(2 * hidden, vocab)

    def step(self, token, hidden, enc):
        embedded = self.dropout(self.embedding(token)).unsqueeze(1)
        context = self.attention(hidden, enc)
        output, hidden = self.gru(torch.cat((embedded, context), dim=2), hidden.unsqueeze(0))
        logits = self.out(torch.cat((output.squeeze(1), context.squeeze(1)), dim=1))
        return F.log_softmax(logits, dim=1), hidden.squeeze(0)

    def loss(self, enc, hidden, sos, tgt):
        token, total = sos, 0.0
        for t in range(tgt.size(1)):
            logp, hidden = self.step(token, hidden, enc)
            total = total + F.nll_loss(logp, tgt[:, t])
            token = tgt[:, t]
        return total / tgt.size(1)

    def greedy(self, enc, hidden, token, steps):
        tokens = []
        for _ in range(steps):
            logp, hidden = self.step(token, hidden, enc)
            token = logp.argmax(dim=1)
            tokens.append(token)
        return torch.stack(tokens, dim=1)


class BatchedDecoder(nn.Module):
    """Same function; work that does not depend on the recurrence is done once."""

    def __init__(self, vocab, emb, hidden, dropout=0.1):
        super().__init__()
        self.embedding = nn.Embedding(vocab, emb)
        self.dropout = nn.Dropout(dropout)
        self.query = nn.Linear(hidden, hidden, bias=False)
        self.key = nn.Linear(hidden, hidden)
        self.v = nn.Linear(hidden, 1, bias=False)
        self.gru = nn.GRUCell(emb + hidden, hidden)
        self.out = nn.Linear(2 * hidden, vocab)

    def recur(self, embedded, hidden, enc, keys):
        energy = torch.tanh(self.query(hidden).unsqueeze(1) + keys)
        weights = F.softmax(self.v(energy).squeeze(2), dim=1)
        context = torch.bmm(weights.unsqueeze(1), enc).squeeze(1)
        return self.gru(torch.cat((embedded, context), dim=1), hidden), context

    def loss(self, enc, hidden, sos, tgt):
        inputs = torch.cat((sos.unsqueeze(1), tgt[:, :-1]), dim=1)
        embedded = self.dropout(self.embedding(inputs)).unbind(1)
        keys, states, contexts = self.key(enc), [], []
        for x in embedded:
            hidden, context = self.recur(x, hidden, enc, keys)
            states.append(hidden)
            contexts.append(context)
        features = torch.cat((torch.stack(states), torch.stack(contexts)), dim=2)
        logits = self.out(features)                            # T x B x V
        return F.cross_entropy(logits.flatten(0, 1), tgt.t().reshape(-1))

    def greedy(self, enc, hidden, token, steps):
        keys, tokens = self.key(enc), []
        for _ in range(steps):
            hidden, context = self.recur(self.embedding(token), hidden, enc, keys)
            token = self.out(torch.cat((hidden, context), dim=1)).argmax(dim=1)
            tokens.append(token)
        return torch.stack(tokens, dim=1)


class RAUCell(nn.Module):
    """GRU with an attention gate on the candidate; nine matmuls a step."""

    def __init__(self, inputs, hidden):
        super().__init__()
        k = hidden ** -0.5

        def weight(*shape):
            return nn.Parameter(torch.empty(*shape).uniform_(-k, k))

        for gate in "rzha":
            setattr(self, "wx" + gate, weight(inputs, hidden))
            setattr(self, "wh" + gate, weight(hidden, hidden))
            setattr(self, "b" + gate, weight(hidden))
        self.waa = weight(hidden, hidden)
        self.hidden = hidden

    def forward(self, x, h):
        r = torch.sigmoid(x @ self.wxr + h @ self.whr + self.br)
        z = torch.sigmoid(x @ self.wxz + h @ self.whz + self.bz)
        c = torch.tanh(x @ self.wxh + r * (h @ self.whh) + self.bh)
        a = torch.sigmoid(x @ self.wxa + h @ self.wha + c @ self.waa + self.ba)
        return (1 - z) * h + z * a * c

    def run(self, x):                                          # B x T x I -> B x T x H
        h, out = x.new_zeros(x.size(0), self.hidden), []
        for t in range(x.size(1)):
            h = self(x[:, t], h)
            out.append(h)
        return torch.stack(out, dim=1)

    def run_batched(self, x):
        wx = torch.cat((self.wxr, self.wxz, self.wxh, self.wxa), dim=1)
        wh = torch.cat((self.whr, self.whz, self.whh, self.wha), dim=1)
        b = torch.cat((self.br, self.bz, self.bh, self.ba))
        projected = (x @ wx + b).unbind(1)
        h, out = x.new_zeros(x.size(0), self.hidden), []
        for p in projected:
            xr, xz, xh, xa = p.chunk(4, dim=1)
            hr, hz, hh, ha = (h @ wh).chunk(4, dim=1)
            r, z = torch.sigmoid(xr + hr), torch.sigmoid(xz + hz)
            c = torch.tanh(xh + r * hh)
            a = torch.sigmoid(xa + ha + c @ self.waa)
            h = h + z * (a * c - h)
            out.append(h)
        return torch.stack(out, dim=1)


class RAUClassifier(nn.Module):
    def __init__(self, inputs, hidden, layers, classes, batched):
        super().__init__()
        self.cells = nn.ModuleList(
            RAUCell(inputs if i == 0 else hidden, hidden) for i in range(layers))
        self.fc = nn.Linear(hidden, classes)
        self.batched = batched

    def forward(self, x):
        for cell in self.cells:
            x = cell.run_batched(x) if self.batched else cell.run(x)
        return self.fc(x[:, -1])


class RecurrentClassifier(nn.Module):
    """nn.GRU or nn.LSTM, and scores from the last step."""

    def __init__(self, layer, inputs, hidden, layers, classes):
        super().__init__()
        self.layers = layer(inputs, hidden, layers, batch_first=True)
        self.fc = nn.Linear(hidden, classes)

    def forward(self, x):
        return self.fc(self.layers(x)[0][:, -1])


class UpdateGateAdder(nn.Module):
    """examples/custom_cell: a cell of plain ops, one step after the other, and one number from its last state."""

    def __init__(self, inputs, hidden):
        super().__init__()
        self.gate = nn.Linear(inputs + hidden, hidden)
        self.candidate = nn.Linear(inputs + hidden, hidden)
        self.out = nn.Linear(hidden, 1)
        self.hidden = hidden

    def forward(self, x):                                      # T x B x I -> B
        h = x.new_zeros(x.size(1), self.hidden)
        for row in x.unbind(0):
            both = torch.cat((row, h), dim=1)
            u = torch.sigmoid(self.gate(both) + 1.0)
            h = u * h + (1.0 - u) * torch.tanh(self.candidate(both))
        return self.out(h).squeeze(1)
