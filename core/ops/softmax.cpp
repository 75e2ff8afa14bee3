#include <rill/core/autograd.h>
#include <rill/core/kernels/reduce.h>
#include <rill/core/ops.h>
#include <rill/core/ops/layout.h>

namespace rill {

using detail::DimSet;
using detail::raw;
using detail::Rows;

namespace {

struct Softmax {
  static constexpr const char* name = "softmax";
  template <class T>
  static void forward(const T* x, T* y, std::int64_t n) noexcept {
    kernels::row_softmax(x, y, n);
  }
  template <class T>
  static void backward(const T* y, const T* dy, T beta, T* dx, std::int64_t n) noexcept {
    kernels::row_softmax_backward(y, dy, beta, dx, n);
  }
};

struct LogSoftmax {
  static constexpr const char* name = "log_softmax";
  template <class T>
  static void forward(const T* x, T* y, std::int64_t n) noexcept {
    kernels::row_log_softmax(x, y, n);
  }
  template <class T>
  static void backward(const T* y, const T* dy, T beta, T* dx, std::int64_t n) noexcept {
    kernels::row_log_softmax_backward(y, dy, beta, dx, n);
  }
};

/// Works on rows: another dimension than the last is moved there and back. y is kept for the gradient, in
/// rows.
template <class Op>
Tensor along_rows(const Tensor& x, std::int64_t dim) {
  return visit_floating(Op::name, x.dtype(), [&]<class T>(Type<T>) {
    const DimSet set(Op::name, dim, x.dim());
    const Rows rows(x, set);
    const std::int64_t n = rows.size();
    const bool in_order = set.are_last(x.dim());
    const Tensor flat = empty(in_order ? x.shape() : Shape{rows.count(), n}, x.dtype());
    detail::parallel_rows(rows.count(), n, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) Op::forward(rows.row<T>(i), raw<T>(flat) + i * n, n);
    });
    Tensor y = in_order ? flat : detail::unmoved(flat, set, x.shape()).contiguous();
    return record(
        Op::name, std::move(y), {x}, [set, flat = save(flat, Op::name)](const Tensor& dy, Grads& d) {
          const T* const result = flat.template data<T>();
          const Rows gradient(dy, set);
          const std::int64_t size = gradient.size();
          detail::write_rows<T>(d[0], set, [&](T* dx, T beta) {
            detail::parallel_rows(gradient.count(), size, [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t i = begin; i < end; ++i) {
                Op::backward(result + i * size, gradient.row<T>(i), beta, dx + i * size, size);
              }
            });
          });
        });
  });
}

}  // namespace

Tensor softmax(const Tensor& x, std::int64_t dim) { return along_rows<Softmax>(x, dim); }
Tensor log_softmax(const Tensor& x, std::int64_t dim) { return along_rows<LogSoftmax>(x, dim); }

}  // namespace rill
