#include <algorithm>

#include <rill/core/autograd.h>
#include <rill/core/ops.h>
#include <rill/core/ops/layout.h>

namespace rill {

using detail::raw;

namespace {

/// y[i] = Σ_{k <= i} x[k] along dim, or k >= i backwards.
template <class T>
Tensor running_sum(const Tensor& x, int dim, bool backwards) {
  const Tensor y = empty(x.shape(), x.dtype());
  if (y.numel() == 0) return y;
  const auto [data, b] = detail::blocked(x, dim, std::min(dim + 1, x.dim()));
  detail::parallel_rows(
      b.outer, b.size * b.inner,
      [&, from = raw<const T>(data), &blocks = b](std::int64_t begin, std::int64_t end) {
        for (std::int64_t o = begin; o < end; ++o) {
          for (std::int64_t c = 0; c < blocks.inner; ++c) {
            double total = 0;
            for (std::int64_t k = 0; k < blocks.size; ++k) {
              const std::int64_t i = backwards ? blocks.size - 1 - k : k;
              total += static_cast<double>(
                  from[o * blocks.outer_stride + i * blocks.stride + c * blocks.inner_stride]);
              raw<T>(y)[(o * blocks.size + i) * blocks.inner + c] = static_cast<T>(total);
            }
          }
        }
      });
  return y;
}

}  // namespace

Tensor cumsum(const Tensor& x, std::int64_t dim) {
  return visit_floating("cumsum", x.dtype(), [&]<class T>(Type<T>) {
    const int along = wrap_dim("cumsum", dim, std::max(x.dim(), 1));
    return record("cumsum", running_sum<T>(x, along, false), {x}, [along](const Tensor& dy, Grads& d) {
      if (auto dx = d[0]) dx.give(running_sum<T>(dy, along, true));
    });
  });
}

}  // namespace rill
