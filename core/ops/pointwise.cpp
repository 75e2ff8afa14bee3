#include <rill/core/ops/pointwise.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include <rill/core/parallel.h>
#include <rill/core/strided.h>

namespace rill::detail {
namespace {

using kernels::DenseLoop;

constexpr int arrays = 4;  // the output and at most three inputs
/// Elements per chunk for parallel_for.
constexpr std::int64_t pointwise_grain = 32768;
/// Elements gathered into dense buffers at a time.
constexpr std::int64_t chunk = 512;

using Steps = std::array<std::int64_t, arrays>;

template <class Item>
void move(std::int64_t n, const std::byte* from, std::int64_t from_step, std::byte* to,
          std::int64_t to_step) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(Item));
  for (std::int64_t i = 0; i < n; ++i)
    std::memcpy(to + i * to_step * size, from + i * from_step * size, sizeof(Item));
}

/// to[i · to_step] = from[i · from_step] for items of a given size; either may be dense.
void move_items(std::size_t item, std::int64_t n, const std::byte* from, std::int64_t from_step,
                std::byte* to, std::int64_t to_step) {
  if (from_step == 1 && to_step == 1) {
    std::memmove(to, from, static_cast<std::size_t>(n) * item);
  } else if (item == 8) {
    move<std::uint64_t>(n, from, from_step, to, to_step);
  } else if (item == 4) {
    move<std::uint32_t>(n, from, from_step, to, to_step);
  } else {
    move<std::uint8_t>(n, from, from_step, to, to_step);
  }
}

struct Sum {
  RILL_INLINE auto operator()(auto a, auto b) const { return a + b; }
};
constexpr Sum sum_of_two{};

/// The arrays of one call of `pointwise`, and the computation of a run of their elements.
class PointwiseArrays {
 public:
  PointwiseArrays(DenseLoop loop, const void* f, std::initializer_list<const Tensor*> from, const Tensor& to,
                  double beta)
      : loop_(loop),
        f_(f),
        inputs_(from.size()),
        add_(beta == 0 ? nullptr : floating_loop<Sum, 2>("add", to.dtype())) {
    set(0, to);
    std::size_t k = 1;
    for (const Tensor* x : from) set(k++, *x);
  }

  /// Runs the n elements that start at at[k] of array k and are steps[k] apart.
  void run(const Steps& at, std::int64_t n, const Steps& steps) const {
    if (!loop_) return move_items(item_[0], n, address(1, at[1]), steps[1], address(0, at[0]), steps[0]);
    std::array<const void*, arrays - 1> from;
    bool dense = steps[0] == 1 && !add_;
    for (std::size_t k = 0; k < inputs_; ++k) {
      from[k] = address(k + 1, at[k + 1]);
      dense = dense && steps[k + 1] == 1;
    }
    if (dense) return loop_(f_, n, from.data(), address(0, at[0]));
    run_chunks(at, n, steps);
  }

 private:
  struct alignas(64) Buffer {
    std::byte bytes[chunk * 8];
  };

  void set(std::size_t k, const Tensor& t) noexcept {
    item_[k] = item_size(t.dtype());
    data_[k] = t.impl().storage->data() + static_cast<std::size_t>(t.impl().offset) * item_[k];
  }

  std::byte* address(std::size_t k, std::int64_t element) const noexcept {
    return data_[k] + element * static_cast<std::int64_t>(item_[k]);
  }

  /// Through dense buffers, chunk by chunk.
  void run_chunks(const Steps& at, std::int64_t n, const Steps& steps) const {
    std::array<Buffer, arrays> buffers;
    std::array<const void*, arrays - 1> from;
    for (std::int64_t done = 0; done < n; done += chunk) {
      const std::int64_t m = std::min(chunk, n - done);
      for (std::size_t k = 0; k < inputs_; ++k) {
        const std::byte* const x = address(k + 1, at[k + 1] + done * steps[k + 1]);
        from[k] = steps[k + 1] == 1 ? x : buffers[k + 1].bytes;
        // A broadcast element fills its buffer once.
        if (steps[k + 1] != 1 && (steps[k + 1] != 0 || done == 0))
          move_items(item_[k + 1], m, x, steps[k + 1], buffers[k + 1].bytes, 1);
      }
      std::byte* const y = address(0, at[0] + done * steps[0]);
      if (steps[0] == 1 && !add_) {
        loop_(f_, m, from.data(), y);
        continue;
      }
      std::byte* const out = buffers[0].bytes;
      loop_(f_, m, from.data(), out);
      if (add_) add(m, out, y, steps[0]);
      if (!add_ || steps[0] != 1) move_items(item_[0], m, out, 1, y, steps[0]);
    }
  }

  /// y += out where y is dense; out += y otherwise.
  void add(std::int64_t n, std::byte* out, std::byte* y, std::int64_t step) const {
    Buffer old;
    const std::array<const void*, 2> terms{step == 1 ? y : old.bytes, out};
    if (step != 1) move_items(item_[0], n, y, step, old.bytes, 1);
    add_(&sum_of_two, n, terms.data(), step == 1 ? y : out);
  }

  DenseLoop loop_;
  const void* f_;
  std::size_t inputs_;
  DenseLoop add_;  // null where the output is overwritten
  std::array<std::byte*, arrays> data_{};
  std::array<std::size_t, arrays> item_{};
};

/// The loop nest over `to` and the inputs broadcast to it, in the memory order of `to`.
LoopNest<arrays> nest_of(std::initializer_list<const Tensor*> from, const Tensor& to) {
  Shape sizes = to.shape();
  std::array<Strides, arrays> strides;
  strides.fill(Strides::filled(sizes.size(), 0));
  strides[0] = to.strides();
  std::size_t k = 1;
  for (const Tensor* x : from) strides[k++] = broadcast_strides(x->shape(), x->strides(), sizes);
  for (int d = 1; d < sizes.size() && !to.is_contiguous(); ++d) {
    for (int at = d; at > 0 && strides[0][at - 1] < strides[0][at]; --at) {
      std::swap(sizes[at - 1], sizes[at]);
      for (Strides& s : strides) std::swap(s[at - 1], s[at]);
    }
  }
  return LoopNest<arrays>(sizes, strides);
}

}  // namespace

void pointwise(DenseLoop loop, const void* f, std::initializer_list<const Tensor*> from, const Tensor& to,
               double beta) {
  const std::int64_t n = to.numel();
  if (n == 0) return;
  const PointwiseArrays arrays_of_call(loop, f, from, to, beta);
  bool dense = to.is_contiguous();
  for (const Tensor* x : from) dense = dense && x->is_contiguous() && x->shape() == to.shape();
  if (dense) {
    parallel_for(n, pointwise_grain, [&](std::int64_t begin, std::int64_t end) {
      arrays_of_call.run({begin, begin, begin, begin}, end - begin, {1, 1, 1, 1});
    });
    return;
  }
  const LoopNest<arrays> nest = nest_of(from, to);
  parallel_for(n, pointwise_grain, [&](std::int64_t begin, std::int64_t end) {
    for_each_run(nest, begin, end, [&](const Steps& at, std::int64_t size, const Steps& steps) {
      arrays_of_call.run(at, size, steps);
    });
  });
}

void give_pointwise(DenseLoop loop, const void* f, std::initializer_list<const Tensor*> from,
                    const Shape& shape, GradRef d) {
  if (d.shape() == shape) {
    const Slot slot = d.slot();
    return pointwise(loop, f, from, slot.to, slot.beta);
  }
  const Tensor full = empty(shape, d.dtype());
  pointwise(loop, f, from, full);
  d.give(sum_to(full, d.shape()));
}

}  // namespace rill::detail
