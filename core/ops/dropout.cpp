#include <rill/core/autograd.h>
#include <rill/core/kernels/dropout.h>
#include <rill/core/ops.h>
#include <rill/core/ops/layout.h>

#include <array>

namespace rill {

using detail::raw;

namespace {

/// y = x with dropped elements 0 and the others scaled; writes which were kept to `kept` unless it is null.
/// The mask is generated in chunks that stay in the cache; its element i depends on i alone.
template <class T>
void drop(const DropoutKey& key, double p, std::int64_t n, const T* x, T* y, std::uint8_t* kept) {
  constexpr std::int64_t chunk = 2048;
  parallel_for(n, 2 * chunk, [&](std::int64_t begin, std::int64_t end) {
    std::array<T, chunk> mask;
    for (std::int64_t i = begin; i < end; i += chunk) {
      const std::int64_t size = std::min(chunk, end - i);
      bernoulli_mask(key.seed, key.stream, key.call, i, i + size, 1 - p, static_cast<T>(1 / (1 - p)),
                     mask.data());
      kernels::apply_mask(x + i, mask.data(), y + i, kept ? kept + i : nullptr, size);
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
    // One byte per element, because regenerating the mask would take several times as long as reading it.
    const Tensor kept = is_recording({x}) ? empty(x.shape(), boolean) : Tensor();
    drop(key, p, y.numel(), raw<const T>(from), raw<T>(y),
         kept.defined() ? raw<std::uint8_t>(kept) : nullptr);
    return record("dropout", y, {x}, [kept, scale = static_cast<T>(1 / (1 - p))](const Tensor& dy, Grads& d) {
      const Slot slot = d[0].in_place_slot(dy);
      const Tensor gradient = dy.contiguous();
      detail::write_contiguous<T>(slot, [&](T* dx, T beta) {
        parallel_for(gradient.numel(), 2 * detail::grain_elements, [&](std::int64_t begin, std::int64_t end) {
          kernels::pass_kept(raw<const T>(gradient) + begin, raw<const std::uint8_t>(kept) + begin, scale,
                             beta, dx + begin, end - begin);
        });
      });
    });
  });
}

}  // namespace rill
