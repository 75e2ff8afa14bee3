#include <limits>

#include <rill/core/core.h>

#include <gradcheck/rows.h>

namespace test {

using rill::Tensor;
using Inputs = std::vector<Tensor>;

namespace {

/// Adds a row whose only input is a normal float64 tensor.
void add(std::vector<GradcheckRow>& rows, const char* op, const rill::Shape& shape,
         rill::GradcheckFunction f) {
  rows.push_back({op, std::move(f), {input(shape, 300 + rows.size())}});
}

/// Distinct float64 values, too far apart for a finite-difference step to change their order.
Tensor distinct(const rill::Shape& shape) {
  Tensor x = rill::empty(shape, rill::float64);
  const std::int64_t n = x.numel();
  for (std::int64_t i = 0; i < n; ++i)
    x.mutable_span<double>()[static_cast<std::size_t>(i)] = 0.5 * static_cast<double>(i * 7 % n) - 1.1;
  return x.set_requires_grad();
}

}  // namespace

std::vector<GradcheckRow> rows_reduce() {
  std::vector<GradcheckRow> rows;
  add(rows, "sum", {2, 3, 2}, [](const Inputs& in) {
    return Inputs{rill::sum(in[0]), rill::sum(in[0], {1}), rill::sum(in[0], {0, -1}, true)};
  });
  add(rows, "sum", {}, [](const Inputs& in) { return Inputs{rill::sum(in[0])}; });
  // The gradient of a sum is expanded; another use of x accumulates into it.
  add(rows, "sum", {3, 2}, [](const Inputs& in) {
    const Tensor x = in[0] * 2;
    return Inputs{rill::sum(x) * rill::sum(rill::square(x)), rill::sum(x, {0})};
  });
  add(rows, "mean", {2, 3, 2}, [](const Inputs& in) {
    return Inputs{rill::mean(in[0]), rill::mean(in[0], {0}), rill::mean(in[0], {1, 2}, true)};
  });
  add(rows, "prod", {3, 4}, [](const Inputs& in) {
    return Inputs{rill::prod(in[0]), rill::prod(in[0], {0}), rill::prod(in[0], {-1}, true)};
  });
  rows.push_back(
      {"prod",
       [](const Inputs& in) { return Inputs{rill::prod(in[0], {1})}; },
       {rill::tensor({1.5, 0.0, -2.0, 0.0, 3.0, 0.0, 0.5, 2.0, -1.0}, {3, 3}).set_requires_grad()}});
  add(rows, "var", {3, 4}, [](const Inputs& in) {
    return Inputs{rill::var(in[0]), rill::var(in[0], {0}, 0), rill::var(in[0], {-1}, 1, true)};
  });
  add(rows, "stddev", {3, 4}, [](const Inputs& in) {
    return Inputs{rill::stddev(in[0]), rill::stddev(in[0], {0}, 0), rill::stddev(in[0], {-1}, 1, true)};
  });
  add(rows, "logsumexp", {3, 4}, [](const Inputs& in) {
    return Inputs{rill::logsumexp(in[0], {0, 1}), rill::logsumexp(in[0], {0}),
                  rill::logsumexp(in[0], {1}, true)};
  });
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double p : {0.5, 1.0, 1.5, 2.0, 3.0, -1.0, infinity, -infinity}) {
    add(rows, "norm", {3, 2}, [p](const Inputs& in) {
      return Inputs{rill::norm(in[0], p), rill::norm(in[0], p, {0}), rill::norm(in[0], p, {1}, true)};
    });
  }
  for (const rill::Shape& shape : {rill::Shape{2, 4}, rill::Shape{2, 2, 3}}) {
    rows.push_back({"amax",
                    [](const Inputs& in) {
                      return Inputs{rill::amax(in[0]), rill::amax(in[0], {0}, true)};
                    },
                    {distinct(shape)}});
    rows.push_back({"amin",
                    [](const Inputs& in) {
                      return Inputs{rill::amin(in[0]), rill::amin(in[0], {-1, 0})};
                    },
                    {distinct(shape)}});
    rows.push_back({"max",
                    [](const Inputs& in) {
                      return Inputs{rill::max(in[0], 0).values, rill::max(in[0], -1, true).values};
                    },
                    {distinct(shape)}});
    rows.push_back({"min",
                    [](const Inputs& in) {
                      return Inputs{rill::min(in[0], 0).values, rill::min(in[0], -1, true).values};
                    },
                    {distinct(shape)}});
    rows.push_back({"topk",
                    [](const Inputs& in) {
                      return Inputs{rill::topk(in[0], 2).values, rill::topk(in[0], 2, 0, false).values,
                                    rill::topk(in[0], 1, 1).values};
                    },
                    {distinct(shape)}});
  }
  add(rows, "cumsum", {2, 3, 2}, [](const Inputs& in) {
    return Inputs{rill::cumsum(in[0], 0), rill::cumsum(in[0], 1), rill::cumsum(in[0], -1)};
  });
  add(rows, "sum_to", {2, 3, 2}, [](const Inputs& in) {
    return Inputs{rill::sum_to(in[0], {2}), rill::sum_to(in[0], {3, 1}), rill::sum_to(in[0], {2, 1, 2}),
                  rill::sum_to(in[0], {})};
  });
  return rows;
}

std::vector<GradcheckRow> rows_softmax() {
  std::vector<GradcheckRow> rows;
  for (const std::int64_t dim : {0, 1, -1}) {
    add(rows, "softmax", {2, 3, 2},
        [dim](const Inputs& in) { return Inputs{rill::softmax(in[0] * 3, dim)}; });
    add(rows, "log_softmax", {2, 3, 2},
        [dim](const Inputs& in) { return Inputs{rill::log_softmax(in[0] * 3, dim)}; });
  }
  // Several uses of one tensor, whose gradients are accumulated.
  add(rows, "softmax", {2, 3}, [](const Inputs& in) {
    return Inputs{rill::softmax(in[0], 1), rill::log_softmax(in[0], 1), rill::softmax(in[0], 0)};
  });
  return rows;
}

}  // namespace test
