#include <parity/ops.h>

#include <optional>
#include <string>

#include <rill/core/ops.h>

namespace rill::parity {
namespace {

Reduction reduction(Call& c) {
  const std::string name = c.has("reduction") ? c.text("reduction") : "mean";
  if (name == "none") return Reduction::none;
  if (name == "sum") return Reduction::sum;
  check(name == "mean", "reduction '{}'; use none, mean or sum", name);
  return Reduction::mean;
}

std::optional<std::int64_t> ignore_index(Call& c) {
  return c.has("ignore_index") ? std::optional(c.integer("ignore_index")) : std::nullopt;
}

Op pair_loss(Tensor (*f)(const Tensor&, const Tensor&, Reduction)) {
  return {{"x", "target"},
          [f](Call& c) { return single(f(c.tensor("x"), c.tensor("target"), reduction(c))); }};
}

}  // namespace

void add_losses(OpTable& table) {
  table["cross_entropy"] = {{"x", "target"}, [](Call& c) {
                              return single(cross_entropy(c.tensor("x"), c.tensor("target"),
                                                          {.weight = c.tensor_or_none("weight"),
                                                           .ignore_index = ignore_index(c),
                                                           .label_smoothing = c.number("label_smoothing", 0),
                                                           .reduction = reduction(c)}));
                            }};
  table["nll_loss"] = {{"x", "target"}, [](Call& c) {
                         return single(nll_loss(c.tensor("x"), c.tensor("target"),
                                                {.weight = c.tensor_or_none("weight"),
                                                 .ignore_index = ignore_index(c),
                                                 .reduction = reduction(c)}));
                       }};
  table["mse_loss"] = pair_loss(mse_loss);
  table["binary_cross_entropy_with_logits"] = pair_loss(binary_cross_entropy_with_logits);
}

}  // namespace rill::parity
