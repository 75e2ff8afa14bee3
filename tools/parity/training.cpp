#include <functional>
#include <string>
#include <vector>

#include <parity/models.h>
#include <parity/optimisers.h>
#include <parity/replay.h>
#include <rill/core/autograd.h>
#include <rill/core/ops.h>
#include <rill/nn/seq2seq/seq2seq.h>
#include <rill/optim/clip.h>

namespace rill::parity {
namespace {

constexpr std::int64_t pad = 0, sos = 1;

/// One training run: step k learns from batch k % batches.
struct Training {
  std::int64_t steps, batches;
  std::optional<double> clip_norm;
  std::string optimiser;
  nlohmann::json options;
};

Training training_of(Call& c) {
  Training t{.steps = c.integer("steps"),
             .batches = c.integer("batches"),
             .clip_norm = {},
             .optimiser = {},
             .options = {}};
  check(t.batches >= 1 && t.steps >= 1, "a training run of {} steps and {} batches", t.steps, t.batches);
  if (c.has("clip_grad_norm")) t.clip_norm = c.number("clip_grad_norm");
  std::tie(t.optimiser, t.options) = named_options(c.json("optimizer"));
  return t;
}

/// Trains the module with `loss(batch)`: losses, norms of the gradients before clipping, the first step's
/// gradients and the parameters at the end.
Results train(const Training& t, const nn::Module& module, const std::function<Tensor(std::int64_t)>& loss) {
  const nn::NamedParameters parameters = module.named_parameters();
  const auto optimiser = make_optimiser(t.optimiser, t.options, parameters);
  Results results;
  std::vector<Tensor> losses;
  std::vector<double> norms;
  for (std::int64_t step = 0; step < t.steps; ++step) {
    optimiser->zero_grad();
    const Tensor value = loss(step % t.batches);
    value.backward();
    if (step == 0) {
      for (const auto& [name, p] : parameters) results["grad.param." + name] = gradient_or_zeros(p).clone();
    }
    norms.push_back(t.clip_norm ? optim::clip_grad_norm_(parameters, *t.clip_norm)
                                : optim::grad_norm(parameters));
    optimiser->step();
    losses.push_back(value.detach());
  }
  results["out.loss"] = stack(losses);
  results["out.grad_norm"] = tensor(norms, {t.steps});
  for (const auto& [name, p] : parameters) results["final.param." + name] = p.detach();
  return results;
}

Results train_last_step(Replay& r, const Training& t) {
  Call& c = r.call();
  Rng rng(0);
  const nn::RecurrentOptions options{.cell = cell_of(c, "rnn"),
                                     .layers = {.input_size = c.integer("input"),
                                                .hidden_size = c.integer("hidden"),
                                                .num_layers = c.integer("num_layers", 1),
                                                .bias = c.flag("bias", true)}};
  LastStep model("rnn", options, c.integer("classes"), rng);
  r.load(model);
  const Tensor x = c.tensor("x"), y = c.tensor("y");
  c.check_all_used();
  return train(t, model,
               [&](std::int64_t k) { return cross_entropy(model(x.select(0, k)), y.select(0, k)); });
}

/// The likeliest token at each step for as many steps as the targets have, whatever comes; each fed into the
/// next.
Tensor greedy(const nn::Seq2Seq& model, const Tensor& source, const Tensor& lengths, std::int64_t steps) {
  const NoGrad no_grad;
  const nn::Encoded encoded = model.encode(source, lengths);
  nn::RecurrentState state = encoded.state;
  Tensor token = full({source.size(1)}, static_cast<double>(sos), int64);
  std::vector<Tensor> tokens;
  for (std::int64_t i = 0; i < steps; ++i) {
    const nn::DecoderStep step = model.decoder().step(token, state, encoded.memory);
    token = argmax(step.log_probs, 1);
    state = step.state;
    tokens.push_back(token);
  }
  return stack(tokens);
}

Results train_seq2seq(Replay& r, const Training& t) {
  Call& c = r.call();
  Rng rng(0);
  const std::int64_t hidden = c.integer("hidden");
  nn::Seq2Seq model({.source_vocabulary = c.integer("vocab"),
                     .target_vocabulary = c.integer("vocab"),
                     .embedding_dim = hidden,
                     .hidden_size = hidden,
                     .num_layers = c.integer("num_layers", 1),
                     .cell = cell_of(c, "rnn"),
                     .dropout = 0},
                    rng);
  r.load(model);
  const Tensor source = c.tensor("src"), given = c.tensor("dec_in"), target = c.tensor("target"),
               all = c.tensor("src_len");
  const bool masked = c.flag("packed_encoder_and_mask");
  const auto lengths = [&](std::int64_t k) { return masked ? all.select(0, k) : Tensor(); };
  c.check_all_used();
  Results results = train(t, model, [&](std::int64_t k) {
    return model.loss(source.select(0, k), lengths(k), given.select(0, k), target.select(0, k),
                      {.ignore_index = pad});
  });
  std::vector<Tensor> decoded;
  for (std::int64_t k = 0; k < t.batches; ++k) {
    decoded.push_back(greedy(model, source.select(0, k), lengths(k), target.size(1)));
  }
  results["out.greedy"] = stack(decoded);
  return results;
}

}  // namespace

Results replay_training(Replay& r) {
  const Training t = training_of(r.call());
  if (r.given().op == "Seq2Seq") return train_seq2seq(r, t);
  if (r.given().op != "LastStep")
    throw Unsupported(fmt::format("rill has no training of '{}'", r.given().op));
  return train_last_step(r, t);
}

}  // namespace rill::parity
