#include <rill/nn/layers/packed_linear.h>

#include <algorithm>

#include <rill/core/autograd.h>
#include <rill/core/ops/packed_weight.h>
#include <rill/core/parallel.h>

namespace rill::nn::detail {
namespace {

constexpr std::int64_t block_columns = 768;
constexpr std::int64_t products_per_chunk = 200000;  // about 10 microseconds

template <class T>
void multiply(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y) {
  const std::int64_t m = x.size(0), k = x.size(1), n = weight.size(1);
  const T* from = x.data<T>();
  const T* offset = bias.defined() ? rill::detail::raw<const T>(bias) : nullptr;
  T* to = y.mutable_data<T>();
  const std::int64_t blocks = (n + block_columns - 1) / block_columns;
  const std::int64_t grain = std::max<std::int64_t>(1, products_per_chunk / (m * k * block_columns + 1));
  parallel_for(blocks, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t block = first; block < last; ++block) {
      const std::int64_t at = block * block_columns, columns = std::min(block_columns, n - at);
      if (offset) {
        for (std::int64_t i = 0; i < m; ++i) std::copy_n(offset + at, columns, to + i * n + at);
      }
      const NoGrad no_grad;
      packed<T>(weight.narrow(1, at, columns), m)
          ->multiply({from, m, k}, offset ? T(1) : T(0), {to + at, m, columns, n});
    }
  });
}

}  // namespace

Tensor packed_linear(const Tensor& x, const StoredWeight& weight, const Tensor& bias) {
  const Tensor w = weight.in_out();
  const bool dense = w.stride(0) == 1 || w.stride(1) == 1;
  if (!dense || is_recording({x, weight.array, bias})) return linear(x, weight, bias);
  const Tensor rows = x.contiguous(), offset = bias.defined() ? bias.contiguous() : bias;
  Tensor y = empty({x.size(0), w.size(1)}, x.dtype());
  visit_floating("linear", x.dtype(), [&]<class T>(Type<T>) { multiply<T>(rows, w, offset, y); });
  return y;
}

}  // namespace rill::nn::detail
