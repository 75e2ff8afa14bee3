#include <rill/nn/sequence.h>

#include <algorithm>

#include <rill/core/parallel.h>

namespace rill::nn::detail {
namespace {

/// Multiplications and additions worth a thread of their own, some 20 microseconds.
constexpr std::int64_t flops_of_share = std::int64_t{1} << 21;

template <class T>
StepRows<T> step_rows(const Tensor& x) {
  return {rill::detail::raw<T>(x), x.stride(0), x.stride(1)};
}

bool has_dense_columns(const Tensor& x) { return x.stride(2) == 1 || x.size(2) <= 1; }

}  // namespace

std::optional<Tensor> as_matrix(const PackedRows& rows, const Tensor& x) {
  if (!rows.dense() || !has_dense_columns(x)) return std::nullopt;
  const std::int64_t steps = rows.steps(), batch = rows.batch(), width = x.size(2);
  const std::int64_t stride = batch > 1 ? x.stride(1) : steps > 1 ? x.stride(0) : width;
  if (stride < width || (batch > 1 && steps > 1 && x.stride(0) != batch * stride)) return std::nullopt;
  return rill::detail::make_view(x.impl().storage, x.dtype(), {steps * batch, width},
                                 {std::max<std::int64_t>(stride, 1), 1}, x.impl().offset);
}

Tensor gather(const PackedRows& rows, const Tensor& x) {
  if (const auto matrix = as_matrix(rows, x)) return *matrix;
  const NoGrad no_grad;
  const Tensor from = has_dense_columns(x) ? x : x.contiguous();
  Tensor matrix = empty({rows.total(), x.size(2)}, x.dtype());
  visit_floating("gather", x.dtype(), [&]<class T>(Type<T>) {
    rows.gather(step_rows<const T>(from), x.size(2), matrix.data<T>());
  });
  return matrix;
}

void scatter(const PackedRows& rows, const Slot& slot, const Tensor& matrix) {
  const bool direct = has_dense_columns(slot.to);
  Tensor to = direct ? slot.to : empty(slot.to.shape(), slot.to.dtype());
  const double beta = direct ? slot.beta : 0;
  visit_floating("scatter", to.dtype(), [&]<class T>(Type<T>) {
    rows.scatter(rill::detail::raw<const T>(matrix), to.size(2), static_cast<T>(beta), step_rows<T>(to));
  });
  if (direct) return;
  Tensor given = slot.to;
  if (slot.beta == 0) {
    given.copy_(to);
  } else {
    given.add_(to);
  }
}

std::vector<std::int64_t> shares(const PackedRows& rows, std::int64_t flops) {
  const std::int64_t by_work = static_cast<std::int64_t>(
      static_cast<double>(rows.total()) * static_cast<double>(flops) / static_cast<double>(flops_of_share));
  const std::int64_t most = std::min<std::int64_t>(num_threads(), rows.batch());
  const std::int64_t wanted = std::max<std::int64_t>(std::min(by_work, most), 1);
  std::vector<std::int64_t> borders{0};
  std::int64_t passed = 0;
  for (std::int64_t rank = 0; rank + 1 < rows.batch(); ++rank) {
    passed += rows.length(rank);
    const auto made = static_cast<std::int64_t>(borders.size());
    if (made < wanted && passed * wanted >= made * rows.total()) borders.push_back(rank + 1);
  }
  borders.push_back(rows.batch());
  return borders;
}

}  // namespace rill::nn::detail
