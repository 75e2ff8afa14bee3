#include <rill/core/autograd.h>
#include <rill/core/ops.h>
#include <rill/core/ops/layout.h>

#include <array>

namespace rill {

using detail::raw;

namespace {

/// y = beta · y + x · mask. The mask is made again where it is needed, in pieces that stay in the cache: that
/// is cheaper than keeping it, and its element i depends on i alone.
template <class T>
void apply_mask(const DropoutKey& key, double p, std::int64_t n, const T* x, T beta, T* y) {
  constexpr std::int64_t piece = 2048;
  parallel_for(n, 2 * piece, [&](std::int64_t begin, std::int64_t end) {
    std::array<T, piece> mask;
    for (std::int64_t i = begin; i < end; i += piece) {
      const std::int64_t size = std::min(piece, end - i);
      bernoulli_mask(key.seed, key.stream, key.call, i, i + size, 1 - p, static_cast<T>(1 / (1 - p)),
                     mask.data());
      const T* const from = x + i;
      T* const to = y + i;
      for (std::int64_t k = 0; k < size; ++k) {
        const T kept = from[k] * mask[static_cast<std::size_t>(k)];
        to[k] = beta == T(0) ? kept : to[k] + kept;
      }
    }
  });
}

}  // namespace

Tensor dropout(const Tensor& x, double p, DropoutKey key) {
  check(p >= 0 && p <= 1, "dropout: p is {}; it must be in 0..1", p);
  return visit_floating("dropout", x.dtype(), [&]<class T>(Type<T>) {
    if (p == 0) {
      return record("dropout", x.detach().clone(), {x}, [](const Tensor& dy, Grads& d) { d[0].give(dy); });
    }
    if (p == 1) {
      return record("dropout", zeros_like(x), {x},
                    [](const Tensor&, Grads& d) { static_cast<void>(d[0].zeroed()); });
    }
    const Tensor from = x.detach().contiguous();
    const Tensor y = empty(x.shape(), x.dtype());
    apply_mask(key, p, y.numel(), raw<const T>(from), T(0), raw<T>(y));
    return record("dropout", y, {x}, [p, key](const Tensor& dy, Grads& d) {
      const Tensor gradient = dy.contiguous();
      detail::write_contiguous<T>(d[0].slot(), [&](T* dx, T beta) {
        apply_mask(key, p, gradient.numel(), raw<const T>(gradient), beta, dx);
      });
    });
  });
}

}  // namespace rill
