/// Matrix products, with one node each for a plain product, a batch and a linear layer.
#include <algorithm>

#include <rill/core/autograd.h>
#include <rill/core/gemm/gemm.h>
#include <rill/core/kernels/reduce.h>
#include <rill/core/ops.h>
#include <rill/core/ops/matmul_into.h>
#include <rill/core/ops/stored_weight.h>
#include <rill/core/parallel.h>

namespace rill {
void matmul_into(const Slot& slot, const Tensor& a, const Tensor& b) {
  visit_floating("matmul", a.dtype(), [&]<class T>(Type<T>) {
    const auto left = matrix_view<const T>(a), right = matrix_view<const T>(b);
    const auto to = matrix_view<T>(slot.to);
    if (!left) return matmul_into(slot, a.contiguous(), b);
    if (!right) return matmul_into(slot, a, b.contiguous());
    if (to) return gemm<T>(*left, *right, static_cast<T>(slot.beta), *to);
    Tensor product = empty(slot.to.shape(), slot.to.dtype());
    matmul_into({product, 0}, a, b);
    Tensor target = slot.to;
    slot.beta == 0 ? target.copy_(product) : target.add_(product);
  });
}

void sum_rows_into(const Slot& slot, const Tensor& x) {
  const Tensor rows = x.stride(-1) == 1 || x.size(-1) <= 1 ? x : x.contiguous();
  Tensor sums = slot.to.is_contiguous() ? slot.to : empty(slot.to.shape(), slot.to.dtype());
  const bool direct = slot.to.is_contiguous();
  // Columns are independent, so they can be partitioned arbitrarily.
  constexpr std::int64_t block = 64, rows_worth_a_thread = 1024;
  const std::int64_t m = rows.shape()[0], n = rows.shape()[1];
  const std::int64_t grain = std::max<std::int64_t>(1, rows_worth_a_thread / std::max<std::int64_t>(m, 1));
  visit_floating("sum", x.dtype(), [&]<class T>(Type<T>) {
    parallel_for((n + block - 1) / block, grain, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t first = begin * block, columns = std::min(end * block, n) - first;
      kernels::sum_rows<T>(m, columns, detail::raw<const T>(rows) + first, rows.strides()[0],
                           direct ? static_cast<T>(slot.beta) : T{0}, detail::raw<T>(sums) + first);
    });
  });
  if (direct) return;
  Tensor target = slot.to;
  slot.beta == 0 ? target.copy_(sums) : target.add_(sums);
}

namespace {

/// [M,K]·[K,N], the node of all plain products.
Tensor matmul_2d(const Tensor& a, const Tensor& b) {
  Tensor y = empty({a.shape()[0], b.shape()[1]}, a.dtype());
  matmul_into({y, 0}, a, b);
  if (!is_recording({a, b})) return unrecorded("matmul", std::move(y));
  return record("matmul", std::move(y), {a, b},
                [a = Saved(a, "matmul"), b = Saved(b, "matmul")](const Tensor& dy, Grads& d) {
                  if (auto da = d[0]) matmul_into(da.slot(), dy, b().t());
                  if (auto db = d[1]) matmul_into(db.slot(), a().t(), dy);
                });
}

/// slot.to[i] = beta · slot.to[i] + a[i]·b[i] for each matrix of a batch; batches of small matrices are
/// partitioned among the threads.
void bmm_into(const Slot& slot, const Tensor& a, const Tensor& b) {
  const std::int64_t batch = a.shape()[0];
  const std::int64_t flops = 2 * a.shape()[1] * a.shape()[2] * b.shape()[2];
  const std::int64_t grain = std::max<std::int64_t>(1, 500000 / std::max<std::int64_t>(flops, 1));
  parallel_for(batch, grain, [&](std::int64_t begin, std::int64_t end) {
    const NoGrad no_grad;
    for (std::int64_t i = begin; i < end; ++i) {
      matmul_into({slot.to.select(0, i), slot.beta}, a.select(0, i), b.select(0, i));
    }
  });
}

Tensor bmm_3d(const Tensor& a, const Tensor& b) {
  Tensor y = empty({a.shape()[0], a.shape()[1], b.shape()[2]}, a.dtype());
  bmm_into({y, 0}, a.detach(), b.detach());
  if (!is_recording({a, b})) return unrecorded("bmm", std::move(y));
  return record("bmm", std::move(y), {a, b},
                [a = Saved(a, "bmm"), b = Saved(b, "bmm")](const Tensor& dy, Grads& d) {
                  if (auto da = d[0]) bmm_into(da.slot(), dy, b().transpose(1, 2));
                  if (auto db = d[1]) bmm_into(db.slot(), a().transpose(1, 2), dy);
                });
}

/// Operands with at least 2 dimensions, one of them more: leading sizes broadcast.
Tensor matmul_batched(const Tensor& a, const Tensor& b) {
  const auto leading = [](const Tensor& t) {
    return Shape(std::span(t.shape().begin(), static_cast<std::size_t>(t.dim() - 2)));
  };
  const Shape batch = broadcast_shapes("matmul", leading(a), leading(b));
  Shape shape = batch;
  shape.push_back(a.size(-2));
  shape.push_back(b.size(-1));
  if (b.dim() == 2) {  // one product of all rows
    return reshape(
        matmul_2d(reshape(a, {checked_mul("matmul", numel(leading(a)), a.size(-2)), a.size(-1)}), b), shape);
  }
  const auto widen = [&](const Tensor& t) {
    Shape wide = batch;
    wide.push_back(t.size(-2));
    wide.push_back(t.size(-1));
    return reshape(expand(t, wide), {numel(batch), t.size(-2), t.size(-1)});
  };
  return reshape(bmm_3d(widen(a), widen(b)), shape);
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  check_same_dtype("matmul", a.dtype(), b.dtype());
  check(a.dim() > 0 && b.dim() > 0, "matmul: shapes {} and {}; operands need at least one dimension",
        a.shape(), b.shape());
  check(a.size(-1) == b.size(b.dim() == 1 ? 0 : -2), "matmul: inner sizes of {} and {} differ", a.shape(),
        b.shape());
  if (a.dim() == 2 && b.dim() == 2) return matmul_2d(a, b);
  if (a.dim() == 1) {
    const Tensor y = matmul(unsqueeze(a, 0), b);
    return squeeze(y, b.dim() == 1 ? 0 : -2);
  }
  if (b.dim() == 1) return squeeze(matmul(a, unsqueeze(b, 1)), -1);
  return matmul_batched(a, b);
}

Tensor bmm(const Tensor& a, const Tensor& b) {
  check_same_dtype("bmm", a.dtype(), b.dtype());
  check(a.dim() == 3 && b.dim() == 3 && a.size(0) == b.size(0) && a.size(2) == b.size(1),
        "bmm: shapes {} and {} are not [B, M, K] and [B, K, N]", a.shape(), b.shape());
  return bmm_3d(a, b);
}

Tensor addmm(const Tensor& c, const Tensor& a, const Tensor& b, double beta, double alpha) {
  const Tensor product = alpha == 1 ? matmul(a, b) : mul(matmul(a, b), alpha);
  if (beta != 0) return add(beta == 1 ? c : mul(c, beta), product);
  check(broadcast_shapes("addmm", c.shape(), product.shape()) == product.shape(),
        "addmm: c {} does not broadcast to the product's {}", c.shape(), product.shape());
  return product;  // whatever c holds, as in BLAS
}

Tensor StoredWeight::turned(bool turn) const {
  const NoGrad no_grad;
  return turn ? array.t() : array.detach();
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check(weight.dim() == 2, "linear: the weight is {}; it must be [out, in]", weight.shape());
  return linear(x, StoredWeight{weight, true}, bias);
}

Tensor linear(const Tensor& x, const StoredWeight& weight, const Tensor& bias) {
  const std::int64_t in = weight.in_size(), out = weight.out_size();
  const DType dtype = weight.array.dtype();
  check(x.dtype() == dtype, "linear: x is {}, the weight {}; use .to({})", name(x.dtype()), name(dtype),
        name(dtype));
  check(x.dim() > 0 && x.size(-1) == in,
        "linear: x {} and weight {} do not fit; they are [..., in] and [out, in]", x.shape(), Shape{out, in});
  check(!bias.defined() || bias.shape() == Shape{out}, "linear: bias {} does not fit weight {}",
        bias.defined() ? bias.shape() : Shape{}, Shape{out, in});
  check(!bias.defined() || bias.dtype() == dtype, "linear: the bias is {}, the weight {}; use .to({})",
        name(bias.defined() ? bias.dtype() : dtype), name(dtype), name(dtype));
  Shape shape = x.shape();
  shape[x.dim() - 1] = out;
  const std::int64_t rows =
      numel(Shape(std::span(shape.begin(), static_cast<std::size_t>(shape.size() - 1))));
  const Shape flat{rows, in};
  Tensor y = empty({rows, out}, x.dtype());
  {
    const NoGrad no_grad;
    if (bias.defined()) y.copy_(bias.detach());
    matmul_into({y, bias.defined() ? 1.0 : 0.0}, x.reshape(flat), weight.in_out());
  }
  y = detail::make_view(y.impl().storage, y.dtype(), shape, contiguous_strides(shape), 0);
  if (!is_recording({x, weight.array, bias})) return unrecorded("linear", std::move(y));
  return record("linear", std::move(y), {x, weight.array, bias},
                [x = Saved(x, "linear"), w = Saved(weight.array, "linear"), out_first = weight.out_first,
                 flat](const Tensor& dy, Grads& d) {
                  const Tensor g = dy.reshape({flat[0], dy.size(-1)});
                  if (auto dx = d[0]) {
                    const Tensor out_in = StoredWeight{w(), out_first}.out_in();
                    const Slot slot = dx.slot();
                    if (slot.to.is_contiguous()) {
                      matmul_into({slot.to.reshape(flat), slot.beta}, g, out_in);
                    } else {  // a gradient that is not contiguous
                      Tensor product = empty(flat, dy.dtype());
                      matmul_into({product, 0}, g, out_in);
                      Tensor to = slot.to;
                      product = product.reshape(to.shape());
                      slot.beta == 0 ? to.copy_(product) : to.add_(product);
                    }
                  }
                  if (auto dw = d[1]) {
                    const Tensor rows_of_x = x().reshape(flat);
                    const Slot slot = dw.slot();
                    out_first ? matmul_into(slot, g.t(), rows_of_x) : matmul_into(slot, rows_of_x.t(), g);
                  }
                  if (auto db = d[2]) sum_rows_into(db.slot(), g);
                });
}

}  // namespace rill
