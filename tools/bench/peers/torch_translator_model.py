"""The network of torch_translator.py: GRU or RAU encoder in both directions, additive attention, decoder, beam search."""
import math
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

PAD, UNK, BOS, EOS = range(4)


class Dropout(nn.Module):
    """As nn.Dropout, four times faster on the CPU (bernoulli_ is slow there)."""
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        if not self.training or not self.p:
            return x
        return x * (torch.rand_like(x) >= self.p).to(x.dtype).mul_(1 / (1 - self.p))


class GRUUnit(nn.Module):
    """One step of a GRU; the input's projection (3H) is made outside, for all steps at once."""
    gates = 3

    def __init__(self, hidden):
        super().__init__()
        self.hidden = hidden
        self.h = nn.Linear(hidden, 3 * hidden)

    def forward(self, gx, h):
        H = self.hidden
        gh = self.h(h)
        r, z = torch.sigmoid(gx[:, :2 * H] + gh[:, :2 * H]).chunk(2, 1)
        n = torch.tanh(torch.addcmul(gx[:, 2 * H:], r, gh[:, 2 * H:]))
        return torch.lerp(n, h, z)


class RAUUnit(nn.Module):
    """Recurrent attention unit: a GRU with an attention gate a on the candidate state."""
    gates = 4

    def __init__(self, hidden):
        super().__init__()
        self.hidden = hidden
        self.h = nn.Linear(hidden, 4 * hidden)
        self.c = nn.Linear(hidden, hidden, bias=False)

    def forward(self, gx, h):
        H = self.hidden
        gh = self.h(h)
        r, z = torch.sigmoid(gx[:, :2 * H] + gh[:, :2 * H]).chunk(2, 1)
        n = torch.tanh(torch.addcmul(gx[:, 2 * H:3 * H], r, gh[:, 2 * H:3 * H]))
        a = torch.sigmoid(gx[:, 3 * H:] + gh[:, 3 * H:] + self.c(n))
        return torch.addcmul((1 - z) * h, z * a, n)


UNITS = {'gru': GRUUnit, 'rau': RAUUnit}


class LoopEncoder(nn.Module):
    """Bidirectional encoder with a Python loop, for units PyTorch has no kernel for."""
    def __init__(self, unit, emb, hidden):
        super().__init__()
        self.x = nn.Linear(emb, 2 * unit.gates * hidden)
        self.fwd, self.bwd = unit(hidden), unit(hidden)

    def forward(self, e, lens):                                   # e: B,S,E
        gf, gb = self.x(e.transpose(0, 1)).chunk(2, 2)            # S,B,G
        S, B = gf.shape[:2]
        m = (torch.arange(S)[:, None] < lens[None, :]).float()[:, :, None]
        out = []
        for unit, g, steps in ((self.fwd, gf, range(S)), (self.bwd, gb, range(S - 1, -1, -1))):
            h, hs = e.new_zeros(B, unit.hidden), [None] * S
            for t in steps:
                h = torch.lerp(h, unit(g[t], h), m[t])
                hs[t] = h
            out.append((torch.stack(hs, 1), h))
        return torch.cat([o for o, _ in out], 2) * m.transpose(0, 1), torch.cat([h for _, h in out], 1)


class GRUEncoder(nn.Module):
    def __init__(self, emb, hidden):
        super().__init__()
        self.rnn = nn.GRU(emb, hidden, batch_first=True, bidirectional=True)

    def forward(self, e, lens):
        out, h = self.rnn(pack_padded_sequence(e, lens, True, enforce_sorted=False))
        return pad_packed_sequence(out, True)[0], torch.cat([h[0], h[1]], 1)


class Translator(nn.Module):
    def __init__(self, n_src, n_tgt, emb, hidden, attn, dropout, unit, readout):
        super().__init__()
        self.src_emb = nn.Embedding(n_src, emb, padding_idx=PAD)
        self.tgt_emb = nn.Embedding(n_tgt, emb, padding_idx=PAD)
        cell = UNITS[unit]
        self.encoder = GRUEncoder(emb, hidden) if unit == 'gru' else LoopEncoder(cell, emb, hidden)
        self.bridge = nn.Linear(2 * hidden, hidden)
        self.key = nn.Linear(2 * hidden, attn)
        self.query = nn.Linear(hidden, attn, bias=False)
        self.v = nn.Parameter(torch.empty(attn).uniform_(-1, 1) / math.sqrt(attn))
        self.x_emb = nn.Linear(emb, cell.gates * hidden)          # decoder input [embedding; context]
        self.x_ctx = nn.Linear(2 * hidden, cell.gates * hidden, bias=False)
        self.cell = cell(hidden)
        self.drop = Dropout(dropout)
        width = hidden + 2 * hidden + emb
        self.readout = nn.Sequential(nn.Linear(width, readout), nn.Tanh(), Dropout(dropout)) if readout else None
        self.out = nn.Linear(readout or width, n_tgt)
        for name, p in self.named_parameters():
            if 'emb.weight' in name and 'x_emb' not in name:
                nn.init.normal_(p, std=0.1)
                p.data[PAD] = 0
            elif p.dim() == 2 and ('weight_hh' in name or '.h.weight' in name or '.c.weight' in name):
                for block in p.data.split(hidden):
                    nn.init.orthogonal_(block)
            elif p.dim() == 2:
                nn.init.xavier_uniform_(p)
            elif 'bias' in name:
                nn.init.zeros_(p)

    def encode(self, src, lens):
        enc, last = self.encoder(self.drop(self.src_emb(src)), lens)
        return enc, self.key(enc), src == PAD, torch.tanh(self.bridge(last))

    def attend(self, h, enc, keys, pad):
        score = torch.tanh(keys + self.query(h)[:, None]) @ self.v        # B,S
        a = torch.softmax(score.masked_fill(pad, -1e9), 1)
        return torch.bmm(a[:, None], enc)[:, 0]

    def logits(self, h, ctx, e):
        x = self.drop(torch.cat([h, ctx, e], -1))
        return self.out(self.readout(x) if self.readout else x)

    def forward(self, src, lens, tgt):
        """Logits of the real target tokens only, and those tokens."""
        enc, keys, pad, h = self.encode(src, lens)
        e = self.drop(self.tgt_emb(tgt[:-1]))
        gx = self.x_emb(e)
        hs, cs = [], []
        for g in gx.unbind(0):
            ctx = self.attend(h, enc, keys, pad)
            h = self.cell(g + self.x_ctx(ctx), h)
            hs.append(h)
            cs.append(ctx)
        real = tgt[1:] != PAD
        return self.logits(torch.stack(hs)[real], torch.stack(cs)[real], e[real]), tgt[1:][real]

    @torch.no_grad()
    def translate(self, src, lens, beam, alpha):
        """Batched beam search (beam 1: greedy); hypotheses ranked by log p / length^alpha."""
        B, V = src.size(0), self.out.out_features
        enc, keys, pad, h = (x.repeat_interleave(beam, 0) for x in self.encode(src, lens))
        y = torch.full((B * beam,), BOS)
        score = torch.full((B, beam), -1e9)
        score[:, 0] = 0
        length = torch.zeros(B, beam)
        done = torch.zeros(B, beam, dtype=torch.bool)
        seq = torch.zeros(B, beam, 0, dtype=torch.long)
        base = torch.arange(B)[:, None] * beam
        for _ in range(2 * src.size(1) + 5):
            e = self.tgt_emb(y)
            ctx = self.attend(h, enc, keys, pad)
            h = self.cell(self.x_emb(e) + self.x_ctx(ctx), h)
            logp = torch.log_softmax(self.logits(h, ctx, e), 1).view(B, beam, V)
            logp[:, :, [PAD, UNK, BOS]] = -1e9
            logp[done] = -1e9
            logp[:, :, PAD].masked_fill_(done, 0.0)               # a finished one goes on as it is
            new_len = length + (~done).float()
            total = score[:, :, None] + logp
            _, pick = (total / new_len[:, :, None] ** alpha).view(B, -1).topk(beam, 1)
            origin, word = torch.div(pick, V, rounding_mode='floor'), pick % V
            score = total.view(B, -1).gather(1, pick)
            length = new_len.gather(1, origin)
            done = done.gather(1, origin) | (word == EOS)
            seq = torch.cat([seq.gather(1, origin[:, :, None].expand(-1, -1, seq.size(2))), word[:, :, None]], 2)
            h = h[(base + origin).view(-1)]
            y = word.view(-1)
            if done.all():
                break
        best = (score / length ** alpha + done.float() * 1e-6).argmax(1)
        return [[w for w in seq[b, best[b]].tolist() if w not in (PAD, EOS)] for b in range(B)]
