#!/usr/bin/python3
"""GRU encoder + additive (Bahdanau) attention + GRU decoder in PyTorch, for CPU.

  torch_translator.py --train train.tsv --valid valid.tsv --test test.tsv
  torch_translator.py --train train.de train.en --valid val.de val.en --test test.de test.en

One path is a TSV file of pairs (source TAB target; --swap turns it round), two
paths are parallel files, line by line.  One JSON line is printed per epoch and one
at the end for each decoder.

BLEU here is plain corpus BLEU-4 (Papineni et al.): one reference, clipped n-gram
counts summed over the corpus, brevity penalty, no smoothing; on lower-cased text in
the tokenisation the model is trained on.  References keep their rare words.
valid_loss is the teacher-forced negative log likelihood per target token (nats,
</s> counted, padding not, rare words as <unk>).  tok_s counts target tokens with
</s> per second of training (evaluation not counted).

On glibc, MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=4294967296 in the
environment spares the page faults of the large temporaries.
"""
import argparse, collections, itertools, json, math, random, re, resource, time, unicodedata
import torch
from torch import nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence

from torch_translator_model import BOS, EOS, PAD, UNITS, UNK, Translator

SPECIALS = ['<pad>', '<unk>', '<s>', '</s>']


# ---------------------------------------------------------------- text

def tokenise(line):
    s = unicodedata.normalize('NFC', line).lower()
    s = s.replace('\u2019', "'").replace('\u02bc', "'")
    s = re.sub('[\u200b\u200c\u200d\u2060\ufeff\u00ad]', '', s)
    return re.findall(r"\w+'?|[^\w\s]", s)     # \s takes NBSP and the thin spaces; l' homme, don' t


def detokenise(tokens):
    s = ' '.join(tokens)
    s = re.sub(r"(\w') (?=\w)", r'\1', s)
    s = re.sub(r'(\w) - (?=\w)', r'\1-', s)
    return re.sub(r' ([.,!?;:)])', r'\1', s)


def read_pairs(paths, swap, max_len=None):
    if len(paths) == 1:
        lines = open(paths[0], encoding='utf-8-sig').read().split('\n')
        pairs = [tuple(l.rstrip('\r').split('\t')[:2]) for l in lines if '\t' in l]
    else:
        a, b = [open(p, encoding='utf-8-sig').read().rstrip('\n').split('\n') for p in paths]
        if len(a) != len(b):
            raise SystemExit('%s: %d lines, %s: %d lines' % (paths[0], len(a), paths[1], len(b)))
        pairs = list(zip(a, b))
    if swap:
        pairs = [(b, a) for a, b in pairs]
    pairs = [(tokenise(a), tokenise(b)) for a, b in pairs]
    if max_len:
        pairs = [(a, b) for a, b in pairs if 0 < len(a) <= max_len and 0 < len(b) <= max_len]
    return pairs


class Vocab:
    def __init__(self, sentences, min_count):
        count = collections.Counter(w for s in sentences for w in s)
        words = sorted((w for w, c in count.items() if c >= min_count), key=lambda w: (-count[w], w))
        self.words = SPECIALS + words
        self.index = {w: i for i, w in enumerate(self.words)}

    def __len__(self):
        return len(self.words)

    def encode(self, sentence):
        return [self.index.get(w, UNK) for w in sentence] + [EOS]

    def decode(self, ids):
        return [self.words[i] for i in ids]


def batches(data, size, shuffle):
    """Pairs of like length together; yields lists of positions in data."""
    order = list(range(len(data)))
    key = lambda i: (len(data[i][1]), len(data[i][0]))
    if not shuffle:
        order.sort(key=key)
        out = [order[i:i + size] for i in range(0, len(order), size)]
    else:
        random.shuffle(order)
        out, pool = [], size * 100
        for p in range(0, len(order), pool):
            part = sorted(order[p:p + pool], key=key)
            out += [part[i:i + size] for i in range(0, len(part), size)]
        random.shuffle(out)
    return out


def collate(data, ids):
    src = pad_sequence([torch.tensor(data[i][0]) for i in ids], True, PAD)      # B,S
    lens = torch.tensor([len(data[i][0]) for i in ids])
    tgt = pad_sequence([torch.tensor([BOS] + data[i][1]) for i in ids], False, PAD)   # T,B
    return src, lens, tgt


# ---------------------------------------------------------------- scores

def bleu(hyps, refs, n=4):
    """Corpus BLEU in percent; refs holds a list of references for each hypothesis."""
    match, total, hl, rl = [0] * n, [0] * n, 0, 0
    grams = lambda s, k: collections.Counter(tuple(s[i:i + k]) for i in range(len(s) - k + 1))
    for h, rs in zip(hyps, refs):
        hl += len(h)
        rl += min((abs(len(r) - len(h)), len(r)) for r in rs)[1]
        for k in range(1, n + 1):
            most = collections.Counter()
            for r in rs:
                most |= grams(r, k)
            match[k - 1] += sum((grams(h, k) & most).values())
            total[k - 1] += max(len(h) - k + 1, 0)
    if min(match) == 0:
        return 0.0
    return 100 * min(1.0, math.exp(1 - rl / hl)) * math.exp(sum(math.log(m / t) for m, t in zip(match, total)) / n)


def evaluate_loss(model, data, size):
    model.eval()
    nll = count = 0
    with torch.no_grad():
        for ids in batches(data, size, False):
            logits, gold = model(*collate(data, ids))
            nll += F.cross_entropy(logits, gold, reduction='sum').item()
            count += gold.numel()
    return nll / count


def translate_all(model, data, vocab, beam, alpha, size):
    model.eval()
    hyps = [None] * len(data)
    for ids in batches(data, max(1, size // beam), False):
        src, lens, _ = collate(data, ids)
        for i, ids_out in zip(ids, model.translate(src, lens, beam, alpha)):
            hyps[i] = vocab.decode(ids_out)
    return hyps


# ---------------------------------------------------------------- main

def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--train', nargs='+', required=True)
    p.add_argument('--valid', nargs='+', required=True)
    p.add_argument('--test', nargs='+')
    p.add_argument('--swap', action='store_true', help='translate the second column into the first')
    p.add_argument('--min-count', type=int, default=1)
    p.add_argument('--max-len', type=int, default=60, help='drop longer training pairs')
    p.add_argument('--unit', choices=UNITS, default='gru')
    p.add_argument('--emb', type=int, default=256)
    p.add_argument('--hidden', type=int, default=256)
    p.add_argument('--attn', type=int, help='width of the attention, hidden if not given')
    p.add_argument('--readout', type=int, default=0, help='a tanh layer this wide before the output layer')
    p.add_argument('--dropout', type=float, default=0.3)
    p.add_argument('--smooth', type=float, default=0.0, help='label smoothing')
    p.add_argument('--batch', type=int, default=64)
    p.add_argument('--lr', type=float, default=1e-3)
    p.add_argument('--clip', type=float, default=1.0)
    p.add_argument('--halve-from', type=int, help='halve the rate before every epoch from this one on')
    p.add_argument('--epochs', type=int, default=10)
    p.add_argument('--max-minutes', type=float, default=1e9, help='start no epoch that would end later than this')
    p.add_argument('--patience', type=int, default=1000, help='stop after so many epochs without a better valid loss')
    p.add_argument('--steps', type=int, help='call so many batches an epoch, instead of a pass over the data')
    p.add_argument('--beam', type=int, default=5)
    p.add_argument('--alpha', type=float, default=1.0, help='length exponent of beam search')
    p.add_argument('--threads', type=int, default=2)
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--save', help='write the best model here')
    p.add_argument('--load', help='start from this model (--epochs 0: decode only)')
    p.add_argument('--out', help='write the test translations to OUT.greedy and OUT.beam')
    a = p.parse_args()
    torch.set_flush_denormal(True)
    torch.set_num_threads(a.threads)
    torch.manual_seed(a.seed)
    random.seed(a.seed)
    start = time.time()
    say = lambda **kw: print(json.dumps(kw, ensure_ascii=False), flush=True)
    rss = lambda: round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)

    train, valid = read_pairs(a.train, a.swap, a.max_len), read_pairs(a.valid, a.swap)
    sv, tv = (Vocab([x[i] for x in train], a.min_count) for i in (0, 1))
    code = lambda pairs: [(sv.encode(s), tv.encode(t)) for s, t in pairs]
    train, valid_ids = code(train), code(valid)
    model = Translator(len(sv), len(tv), a.emb, a.hidden, a.attn or a.hidden, a.dropout, a.unit, a.readout)
    if a.load:
        model.load_state_dict(torch.load(a.load))
    say(pairs=len(train), valid=len(valid), src_vocab=len(sv), tgt_vocab=len(tv),
        parameters=sum(x.numel() for x in model.parameters()), target_tokens=sum(len(t) for _, t in train),
        seconds=round(time.time() - start, 1))
    optim = torch.optim.Adam(model.parameters(), lr=a.lr)
    best = {'loss': (1e9, 0, None), 'bleu': (1e9, 0, None)}       # value, epoch, state

    per_pass = len(batches(train, a.batch, False))
    stream = (ids for _ in itertools.count() for ids in batches(train, a.batch, True))

    for epoch in range(1, a.epochs + 1):
        if a.halve_from and epoch >= a.halve_from:
            optim.param_groups[0]['lr'] /= 2
        model.train()
        t0, nll, count = time.time(), 0.0, 0
        for ids in itertools.islice(stream, a.steps or per_pass):
            logits, gold = model(*collate(train, ids))
            logp = torch.log_softmax(logits, 1)
            real = F.nll_loss(logp, gold)
            loss = real if not a.smooth else (1 - a.smooth) * real - a.smooth * logp.mean()
            optim.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), a.clip)
            optim.step()
            nll += real.item() * gold.numel()
            count += gold.numel()
        spent = time.time() - t0
        valid_loss = evaluate_loss(model, valid_ids, a.batch)
        hyps = translate_all(model, valid_ids, tv, 1, a.alpha, 200)
        valid_bleu = bleu(hyps, [[t] for _, t in valid])
        say(epoch=epoch, train_loss=round(nll / count, 4), valid_loss=round(valid_loss, 4),
            valid_bleu=round(valid_bleu, 2), tok_s=round(count / spent), train_s=round(spent, 1),
            seconds=round(time.time() - start, 1), rss_mb=rss(), lr=optim.param_groups[0]['lr'])
        for name, value in (('loss', valid_loss), ('bleu', -valid_bleu)):
            if value < best[name][0]:
                best[name] = (value, epoch, {k: v.clone() for k, v in model.state_dict().items()})
        if best['loss'][1] != epoch and not (a.halve_from and epoch + 1 >= a.halve_from):
            optim.param_groups[0]['lr'] /= 2
        if a.save and best['bleu'][1] == epoch:
            torch.save(model.state_dict(), a.save)
        if epoch - best['loss'][1] >= a.patience:
            break
        if (time.time() - start + (time.time() - t0)) / 60 > a.max_minutes:
            break

    if not a.test:
        return
    test = read_pairs(a.test, a.swap)
    test_ids = code(test)
    refs = [[t] for _, t in test]
    chosen = [('loaded', 0, None)] if a.epochs == 0 else [(k, best[k][1], best[k][2]) for k in ('loss', 'bleu')]
    for name, epoch, state in chosen:
        if state:
            model.load_state_dict(state)
        test_loss = evaluate_loss(model, test_ids, a.batch)
        for beam in dict.fromkeys((1, a.beam)):
            t0 = time.time()
            hyps = translate_all(model, test_ids, tv, beam, a.alpha, 200)
            say(test_bleu=round(bleu(hyps, refs), 2), beam=beam, model_of_best=name, epoch=epoch,
                test_loss=round(test_loss, 4), decode_s=round(time.time() - t0, 2), sentences=len(test),
                length_ratio=round(sum(map(len, hyps)) / sum(len(r[0]) for r in refs), 3))
            if a.out and name != 'loss':
                with open('%s.%s' % (a.out, 'greedy' if beam == 1 else 'beam'), 'w', encoding='utf-8') as f:
                    f.writelines(detokenise(h) + '\n' for h in hyps)
    for i in range(0, len(test), max(1, len(test) // 8)):
        say(source=detokenise(test[i][0]), reference=detokenise(test[i][1]), translation=detokenise(hyps[i]))
    say(seconds=round(time.time() - start, 1), rss_mb=rss())


if __name__ == '__main__':
    main()
