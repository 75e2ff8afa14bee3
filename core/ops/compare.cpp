/// Selection and comparison.
#include <cmath>

#include <rill/core/ops/pointwise.h>

namespace rill {
namespace {

struct Choose {
  RILL_INLINE auto operator()(bool mask, auto a, auto b) const { return mask ? a : b; }
};
constexpr Choose choose{};

kernels::DenseLoop choose_loop(DType dtype) {
  return visit(dtype,
               []<class T>(Type<T>) -> kernels::DenseLoop { return kernels::map3<Choose, T, bool, T, T>; });
}

void check_mask(const char* op, const Tensor& mask) {
  check(mask.dtype() == boolean, "{}: the mask is {}, not boolean; compare first, as in ne(x, 0)", op,
        name(mask.dtype()));
}

/// Adds to d the elements of dy where mask == chosen, 0 elsewhere, summed over the broadcast dimensions.
void give_masked(GradRef d, const Tensor& dy, const Tensor& mask, bool chosen) {
  if (!d) return;
  const Tensor zero = zeros({}, dy.dtype());
  detail::give_pointwise(choose_loop(dy.dtype()), &choose,
                         {&mask, chosen ? &dy : &zero, chosen ? &zero : &dy}, dy.shape(), d);
}

}  // namespace

Tensor where(const Tensor& mask, const Tensor& a, const Tensor& b) {
  check_mask("where", mask);
  check_same_dtype("where", a.dtype(), b.dtype());
  const Shape operands = broadcast_shapes("where", a.shape(), b.shape());
  const Tensor y = empty(broadcast_shapes("where", mask.shape(), operands), a.dtype());
  detail::pointwise(choose_loop(a.dtype()), &choose, {&mask, &a, &b}, y);
  return record("where", y, {a, b}, [mask = Saved(mask, "where")](const Tensor& dy, Grads& d) {
    give_masked(d[0], dy, mask(), true);
    give_masked(d[1], dy, mask(), false);
  });
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, double value) {
  check_mask("masked_fill", mask);
  check(broadcast_shapes("masked_fill", x.shape(), mask.shape()) == x.shape(),
        "masked_fill: the mask {} does not broadcast to {}", mask.shape(), x.shape());
  check_representable("masked_fill", value, x.dtype());
  const Tensor y = empty(x.shape(), x.dtype());
  const Tensor filling = full({}, value, x.dtype());
  detail::pointwise(choose_loop(x.dtype()), &choose, {&mask, &filling, &x}, y);
  return record("masked_fill", y, {x}, [mask = Saved(mask, "masked_fill")](const Tensor& dy, Grads& d) {
    give_masked(d[0], dy, mask(), false);
  });
}

namespace {

struct Equal {
  RILL_INLINE bool operator()(auto a, auto b) const { return a == b; }
};
struct NotEqual {
  RILL_INLINE bool operator()(auto a, auto b) const { return a != b; }
};
struct Less {
  RILL_INLINE bool operator()(auto a, auto b) const { return a < b; }
};
struct LessOrEqual {
  RILL_INLINE bool operator()(auto a, auto b) const { return a <= b; }
};
struct Greater {
  RILL_INLINE bool operator()(auto a, auto b) const { return a > b; }
};
struct GreaterOrEqual {
  RILL_INLINE bool operator()(auto a, auto b) const { return a >= b; }
};

template <class Relation>
Tensor compared(const char* op, const Tensor& a, const Tensor& b) {
  check_same_dtype(op, a.dtype(), b.dtype());
  const Tensor y = empty(broadcast_shapes(op, a.shape(), b.shape()), boolean);
  constexpr Relation relation{};
  visit(a.dtype(), [&]<class T>(Type<T>) {
    detail::pointwise(kernels::map2<Relation, bool, T, T>, &relation, {&a, &b}, y);
  });
  return y;
}

/// With the scalar in the tensor's dtype where that is exact for integers, both in float64 otherwise.
template <class Relation>
Tensor compared(const char* op, const Tensor& a, double b) {
  const bool integer = std::trunc(b) == b && std::fabs(b) < 0x1p63;
  const DType dtype = is_floating(a.dtype()) ? a.dtype() : (integer ? int64 : float64);
  return compared<Relation>(op, to(a.detach(), dtype), full({}, b, dtype));
}

}  // namespace

Tensor eq(const Tensor& a, const Tensor& b) { return compared<Equal>("eq", a, b); }
Tensor ne(const Tensor& a, const Tensor& b) { return compared<NotEqual>("ne", a, b); }
Tensor lt(const Tensor& a, const Tensor& b) { return compared<Less>("lt", a, b); }
Tensor le(const Tensor& a, const Tensor& b) { return compared<LessOrEqual>("le", a, b); }
Tensor gt(const Tensor& a, const Tensor& b) { return compared<Greater>("gt", a, b); }
Tensor ge(const Tensor& a, const Tensor& b) { return compared<GreaterOrEqual>("ge", a, b); }
Tensor eq(const Tensor& a, double b) { return compared<Equal>("eq", a, b); }
Tensor ne(const Tensor& a, double b) { return compared<NotEqual>("ne", a, b); }
Tensor lt(const Tensor& a, double b) { return compared<Less>("lt", a, b); }
Tensor le(const Tensor& a, double b) { return compared<LessOrEqual>("le", a, b); }
Tensor gt(const Tensor& a, double b) { return compared<Greater>("gt", a, b); }
Tensor ge(const Tensor& a, double b) { return compared<GreaterOrEqual>("ge", a, b); }

}  // namespace rill
