#include <rill/core/core.h>

#include <gradcheck/rows.h>

namespace test {

using rill::Reduction;
using rill::Tensor;
using Inputs = std::vector<Tensor>;

namespace {

constexpr Reduction reductions[] = {Reduction::none, Reduction::mean, Reduction::sum};

Tensor targets(std::initializer_list<std::int64_t> values, const rill::Shape& shape) {
  return rill::tensor(values, shape);
}

/// The defaults, and all options at once.
std::vector<rill::CrossEntropyOptions> class_options(Reduction reduction) {
  return {{.reduction = reduction},
          {.weight = rill::tensor({0.5, 2.0, 1.0, 0.0}),
           .ignore_index = 1,
           .label_smoothing = 0.2,
           .reduction = reduction}};
}

}  // namespace

std::vector<GradcheckRow> rows_loss() {
  std::vector<GradcheckRow> rows;
  for (const Reduction reduction : reductions) {
    for (const rill::CrossEntropyOptions& options : class_options(reduction)) {
      const auto f = [options](const Inputs& in) {
        return Inputs{rill::cross_entropy(in[0] * 2, in[1], options)};
      };
      rows.push_back({"cross_entropy", f, {input({5, 4}, 500), targets({3, 1, 0, 2, 0}, {5})}});
      rows.push_back({"cross_entropy", f, {input({2, 4, 2}, 501), targets({3, 1, 0, 2}, {2, 2})}});
      const auto linear = [options](const Inputs& in) {
        return Inputs{rill::linear_cross_entropy(in[0], in[1], in[2], in[3], options) * 1.5};
      };
      rows.push_back(
          {"linear_cross_entropy",
           linear,
           {input({5, 3}, 502), input({4, 3}, 503), input({4}, 504), targets({3, 1, 0, 2, 0}, {5})}});
    }
    rows.push_back(
        {"cross_entropy",
         [reduction](const Inputs& in) {
           return Inputs{rill::cross_entropy(
               in[0], rill::softmax(in[1], 1),
               {.weight = rill::tensor({0.5, 2.0, 1.0}), .label_smoothing = 0.1, .reduction = reduction})};
         },
         {input({2, 3, 2}, 505), input({2, 3, 2}, 506)}});
    rows.push_back(
        {"nll_loss",
         [reduction](const Inputs& in) {
           return Inputs{rill::nll_loss(
               in[0], in[1],
               {.weight = rill::tensor({0.5, 2.0, 1.0}), .ignore_index = 0, .reduction = reduction})};
         },
         {input({2, 3, 2}, 507), targets({2, 1, 0, 2}, {2, 2})}});
    rows.push_back({"mse_loss",
                    [reduction](const Inputs& in) { return Inputs{rill::mse_loss(in[0], in[1], reduction)}; },
                    {input({2, 3}, 508), input({2, 3}, 509)}});
    rows.push_back({"binary_cross_entropy_with_logits",
                    [reduction](const Inputs& in) {
                      return Inputs{rill::binary_cross_entropy_with_logits(in[0] * 3, in[1], reduction)};
                    },
                    {input({2, 3}, 510), input_between({2, 3}, 0, 1, 511)}});
  }
  rows.push_back({"cross_entropy",
                  [](const Inputs& in) { return Inputs{rill::cross_entropy(in[0], in[1])}; },
                  {input({4}, 512), targets({2}, {})}});
  rows.push_back(
      {"linear_cross_entropy",
       [](const Inputs& in) { return Inputs{rill::linear_cross_entropy(in[0], in[1].t(), Tensor(), in[2])}; },
       {input({3, 2}, 513), input({2, 4}, 514), targets({3, 1, 0}, {3})}});
  return rows;
}

std::vector<GradcheckRow> rows_layer_norm() {
  std::vector<GradcheckRow> rows;
  rows.push_back({"layer_norm",
                  [](const Inputs& in) { return Inputs{rill::layer_norm(in[0], {4}, in[1], in[2])}; },
                  {input({2, 3, 4}, 520), input({4}, 521), input({4}, 522)}});
  rows.push_back({"layer_norm",
                  [](const Inputs& in) {
                    return Inputs{rill::layer_norm(in[0], {3, 4}, in[1], in[2], 0.1)};
                  },
                  {input({2, 3, 4}, 523), input({3, 4}, 524), input({3, 4}, 525)}});
  rows.push_back({"layer_norm",
                  [](const Inputs& in) {
                    return Inputs{rill::layer_norm(in[0], {4}), rill::layer_norm(in[0], {4}, in[1]),
                                  rill::layer_norm(in[0], {4}, Tensor(), in[1])};
                  },
                  {input({3, 4}, 526), input({4}, 527)}});
  return rows;
}

}  // namespace test
