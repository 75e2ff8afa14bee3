#include <rill/core/core.h>
#include <rill/nn/gradcheck.h>
#include <rill/nn/recurrent/unit.h>
#include <rill/nn/seq2seq/decoder_sequence.h>
#include <rill/nn/seq2seq/seq2seq.h>

#include <gradcheck/rows.h>

#include <memory>
#include <utility>

namespace test {

using rill::Tensor;
using Inputs = std::vector<Tensor>;
namespace nn = rill::nn;

namespace {

Tensor ids(std::initializer_list<std::int64_t> values, const rill::Shape& shape) {
  return rill::tensor(values, shape);
}

GradcheckRow attention_row(const Tensor& lengths) {
  const auto f = [lengths](const Inputs& in) {
    const nn::Attended out =
        nn::additive_attention(in[0], in[1], {.values = in[3], .keys = in[2], .lengths = lengths});
    return Inputs{out.context, out.weights};
  };
  return {"additive_attention",
          f,
          {input({2, 3}, 801), input({3}, 802), input({4, 2, 3}, 803), input({4, 2, 2}, 804)}};
}

/// decoder_sequence over two steps with every input that the unit has; `lengths` [2] in steps.
GradcheckRow sequence_row(nn::Cell cell, const nn::DecoderReading& reading, const Tensor& lengths) {
  const nn::detail::Unit& unit = nn::detail::unit_of(cell);
  const std::int64_t h = 2, width = unit.gates * h;
  const nn::SequenceRows rows("test", 2, 2, lengths);
  const auto if_wanted = [](bool wanted, const rill::Shape& shape, std::uint64_t seed) {
    return wanted ? input(shape, seed) : Tensor();
  };
  const Inputs in{input({rows.count(), 2}, 811),
                  input({2, h}, 812),
                  if_wanted(unit.states == 2, {2, h}, 813),
                  input({h + 2, 3}, 814),
                  input({3}, 815),
                  input({3, 2, 3}, 816),
                  input({3, 2, 2}, 817),
                  input({4, width}, 818),
                  input({h, width}, 819),
                  input({width}, 820),
                  if_wanted(unit.biases == 2, {width}, 821),
                  if_wanted(unit.has_inner(), {h, h}, 822)};
  const auto f = [cell, reading, rows](const Inputs& x) {
    const nn::DecoderWeights w{.attention = x[3], .v = x[4], .unit = {x[7], x[8], x[9], x[10], x[11]}};
    const nn::Memory memory{.values = x[6], .keys = x[5], .lengths = ids({3, 2}, {2})};
    const auto out = nn::decoder_sequence(cell, rows, {x[0], {x[1], x[2]}}, w, memory, reading);
    Inputs results{out.features, out.weights, out.state.h};
    if (out.state.c.defined()) results.push_back(out.state.c);
    return results;
  };
  return {"decoder_sequence", f, in};
}

/// A module as a function of its parameters and `inputs`.
template <class M, class Options, class F>
GradcheckRow module_row(const char* name, const Options& options, F call, const Inputs& inputs) {
  rill::Rng rng(830);
  const auto module = std::make_shared<M>(options, rng);
  module->to(rill::float64);
  module->eval();
  const std::vector<nn::Parameter> parameters = module->parameters();
  Inputs all(parameters.begin(), parameters.end());
  const std::size_t count = all.size();
  all.insert(all.end(), inputs.begin(), inputs.end());
  const auto f = [module, call, count](const Inputs& given) {
    const nn::Substitution substitution(*module, std::span(given).first(count));
    return Inputs{call(*module, Inputs(given.begin() + static_cast<std::ptrdiff_t>(count), given.end()))};
  };
  return {name, f, all};
}

GradcheckRow decoder_row(nn::AttentionDecoderOptions options) {
  options.vocabulary = 4;
  options.embedding_dim = 2;
  options.hidden_size = 2;
  options.memory_size = 3;
  options.attention_size = 2;
  const auto call = [](const nn::AttentionDecoder& decoder, const Inputs& in) {
    const nn::Memory memory = decoder.prepare(in[1], ids({3, 2}, {2}));
    return decoder.loss(ids({1, 1, 3, 2}, {2, 2}), in[0], memory, ids({3, 2, 1, 0}, {2, 2}),
                        {.ignore_index = 0});
  };
  return module_row<nn::AttentionDecoder>("AttentionDecoder", options, call,
                                          {input({2, 2}, 831), input({3, 2, 3}, 832)});
}

GradcheckRow seq2seq_row(nn::Cell cell, bool attention) {
  const nn::Seq2SeqOptions options{.source_vocabulary = 4,
                                   .target_vocabulary = 4,
                                   .embedding_dim = 2,
                                   .hidden_size = 2,
                                   .bidirectional = true,
                                   .directions = attention ? nn::Directions::concat : nn::Directions::sum,
                                   .bridge = attention ? nn::Bridge::project : nn::Bridge::sum,
                                   .cell = cell,
                                   .attention = attention};
  const auto call = [](const nn::Seq2Seq& model, const Inputs&) {
    return model.loss(ids({3, 2, 1, 3}, {2, 2}), ids({2, 1}, {2}), ids({1, 1, 3, 2}, {2, 2}),
                      ids({3, 2, 1, 0}, {2, 2}), {.ignore_index = 0});
  };
  return module_row<nn::Seq2Seq>("Seq2Seq", options, call, {});
}

GradcheckRow attention_module_row() {
  const auto call = [](const nn::AdditiveAttention& attention, const Inputs& in) {
    return attention(in[0], attention.prepare(in[1], ids({1, 3}, {2}))).context;
  };
  const nn::AdditiveAttentionOptions options{.hidden_size = 2, .memory_size = 3, .attention_size = 2};
  return module_row<nn::AdditiveAttention>("AdditiveAttention", options, call,
                                           {input({1, 2, 2}, 841), input({3, 2, 3}, 842)});
}

}  // namespace

std::vector<GradcheckRow> rows_decoder() {
  return {
      attention_row(Tensor()),
      attention_row(ids({3, 0}, {2})),
      attention_module_row(),
      sequence_row(nn::Cell::gru, {}, Tensor()),
      sequence_row(nn::Cell::gru, {.relu_input = false, .output_embedding = true}, ids({2, 1}, {2})),
      sequence_row(nn::Cell::lstm, {}, ids({2, 1}, {2})),
      sequence_row(nn::Cell::rau, {.output_embedding = true}, Tensor()),
      decoder_row({}),
      decoder_row({.attention = false, .output_embedding = true}),
      decoder_row({.cell = nn::Cell::rau, .relu_input = false, .output_embedding = true, .readout_size = 3}),
      seq2seq_row(nn::Cell::gru, true),
      seq2seq_row(nn::Cell::lstm, true),
      seq2seq_row(nn::Cell::rau, false)};
}

}  // namespace test
