/// Decoding: from a prepared source to the token sequences that a decoder finds most probable.
#pragma once

#include <cstdint>
#include <vector>

#include <rill/nn/seq2seq/decoder.h>

#pragma GCC visibility push(default)

namespace rill::nn {

struct SearchOptions {
  std::int64_t beam = 1;      ///< sequences followed at once for each source; 1 is greedy decoding
  double length_penalty = 1;  ///< α of the score log p / length^α that sequences are ranked by
  std::int64_t start = 1;     ///< token read first
  std::int64_t end = 2;       ///< token that ends a sequence
  std::vector<std::int64_t> banned = {0, 1};  ///< tokens that are never written: padding and start
  std::int64_t max_steps = 0;                 ///< most tokens, `end` included; 0: see search()
  bool weights = false;                       ///< keep the attention's weights
};

/// A sequence that was found.
struct Hypothesis {
  std::vector<std::int64_t> tokens = {};  ///< without start and end
  bool finished = false;                  ///< whether it came to its end within the steps allowed
  double log_prob = 0;                    ///< log p, its end included
  double score = 0;                       ///< log p / length^α, the end counted
  Tensor weights = {};                    ///< [tokens (+ end), S] where they were asked for
};

/// Batched beam search: for each of the memory's B sources up to `beam` sequences, best score first. Finished
/// sequences keep their place in the beam as long as none that goes on scores better; rows whose sequences
/// are all finished cost nothing any more. A source gives the same result alone as in a batch, up to
/// rounding. A sequence that has not ended after `max_steps` tokens, by default 2 · length of the source + 5,
/// is left unfinished; `lengths` [B] are the sources' where they are not the memory's. The decoder's mode is
/// the caller's care (eval() turns dropout off). hidden [B, H] or [1, B, H]. Throws "search: …" for a beam
/// below 1, tokens outside the vocabulary and scores that are no numbers.
std::vector<std::vector<Hypothesis>> search(const AttentionDecoder& decoder, const Tensor& hidden,
                                            const Memory& memory, const SearchOptions& options = {},
                                            const Tensor& lengths = Tensor());

}  // namespace rill::nn

#pragma GCC visibility pop
