/// Tensor: a reference-counted, strided, n-dimensional array that autograd can track.
///
/// Copying a Tensor copies the handle; `clone()` copies the data. Views (reshape, transpose, narrow, …) share
/// storage with their base. The dtypes are float32, float64, int64 and boolean, without implicit promotion.
/// Dimensions may have size 0. Differentiable ops are free functions in ops.h; the methods here cover element
/// access, autograd state, views and in-place updates.
///
/// Thread safety: that of std::shared_ptr. Any number of threads may concurrently read the same elements
/// (const access, ops, new views) and copy or destroy their own handles. A write needs exclusive access: to
/// the storage, shared by all its views, for mutable access and in-place ops; to the tensor for
/// set_requires_grad, set_grad, zero_grad and register_hook; to the handle for an assignment to it. For
/// backward passes see autograd.h.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <rill/core/autograd/node.h>
#include <rill/core/dtype.h>
#include <rill/core/error.h>
#include <rill/core/memory/ref.h>
#include <rill/core/memory/storage.h>
#include <rill/core/shape.h>

#pragma GCC visibility push(default)

namespace rill {

class [[gnu::visibility("hidden")]] Backward;
class Rng;
class Tensor;

namespace detail {
/// Pointer to the first element, without a dtype check or a version bump.
template <class T>
T* raw(const Tensor& t) noexcept;
}  // namespace detail

/// The object behind a Tensor. Internal: use Tensor.
struct TensorImpl : RefCounted {
  DType dtype = float32;
  bool requires_grad = false;  ///< leaves only; see Tensor::requires_grad()
  bool contiguous = true;
  bool hooked = false;       ///< the running backward pass buffers the gradient until its hooks have run
  std::uint32_t output = 0;  ///< output index in `node`
  std::int64_t numel = 0;
  std::int64_t offset = 0;  ///< in elements
  Shape shape;
  Strides strides;
  Ref<Storage> storage;
  Ref<Node> node;  ///< the op that produced the tensor; null for a leaf
  Ref<TensorImpl> grad;
  Hooks* hooks = nullptr;
  std::atomic<Backward*> pass{nullptr};  ///< the running pass that owns a leaf's `grad`

  static void destroy(TensorImpl* impl) noexcept;
};

/// A strided n-dimensional array. Tensor is a handle: copies share the data.
class Tensor {
 public:
  Tensor() = default;
  /// Internal.
  explicit Tensor(Ref<TensorImpl> impl) noexcept : impl_(std::move(impl)) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  ~Tensor() = default;
  /// Rebinds this handle. `x.select(0, 0) = y`, which would change no element, does not compile; write
  /// x.select(0, 0).copy_(y).
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & noexcept = default;

  // --- layout (all but defined() throw on an undefined tensor)
  bool defined() const noexcept { return static_cast<bool>(impl_); }
  DType dtype() const { return impl().dtype; }
  const Shape& shape() const { return impl().shape; }
  const Strides& strides() const { return impl().strides; }  ///< in elements
  int dim() const { return impl().shape.size(); }
  /// Size of dimension d; a negative d counts from the end.
  std::int64_t size(std::int64_t d) const { return shape()[wrap_dim("size", d, dim())]; }
  std::int64_t stride(std::int64_t d) const { return strides()[wrap_dim("stride", d, dim())]; }
  std::int64_t numel() const { return impl().numel; }
  bool is_contiguous() const { return impl().contiguous; }  ///< dense and row-major

  // --- access
  /// Read-only pointer to the first element. Throws unless T is the C++ type of dtype().
  template <class T>
  const T* data() const {
    check_type(dtype_of<T>);
    return detail::raw<const T>(*this);
  }
  /// Writable pointer to the first element. Each call counts as one in-place change of the storage: it bumps
  /// the version, so that backward throws if an op saved the old contents, and drops cached packed weights.
  /// Call it after the last op that used the tensor and finish writing before the next one: writes through
  /// an older pointer are not detected. Throws unless T is the C++ type of dtype().
  template <class T>
  T* mutable_data() {
    check_type(dtype_of<T>);
    impl().storage->bump_version();
    return detail::raw<T>(*this);
  }
  /// All elements in row-major order, read-only. Throws unless the tensor is contiguous.
  template <class T>
  std::span<const T> span() const {
    check_contiguous();
    return {data<T>(), static_cast<std::size_t>(numel())};
  }
  /// Writable span(); each call counts as one in-place change, see mutable_data().
  template <class T>
  std::span<T> mutable_span() {
    check_contiguous();
    return {mutable_data<T>(), static_cast<std::size_t>(numel())};
  }
  /// The value of a one-element tensor, converted from its dtype to T. Throws for any other size.
  template <class T = double>
  T item() const {
    check(numel() == 1, "item: a tensor of shape {} has {} elements; index it first", shape(), numel());
    return visit(dtype(), [&]<class U>(Type<U>) { return convert<T>(*data<U>()); });
  }
  /// A copy of the elements in row-major order, converted to T.
  template <class T = double>
  std::vector<T> to_vector() const;

  // --- autograd
  /// True for a leaf marked by set_requires_grad and for every result recorded from one.
  bool requires_grad() const { return impl().node || impl().requires_grad; }
  /// Sets whether backward() accumulates into this leaf's grad(). Throws for non-floating dtypes, for
  /// non-contiguous tensors and for results of recorded ops. Returns *this.
  Tensor& set_requires_grad(bool requires_grad = true);
  bool is_leaf() const { return !impl().node; }
  /// The accumulated gradient, contiguous; undefined before the first backward().
  Tensor grad() const;
  /// Sets the gradient to a copy of `grad`. Throws unless shape and dtype match this tensor's.
  void set_grad(const Tensor& grad);
  /// Clears the gradient: grad() is undefined afterwards.
  void zero_grad();
  /// Accumulates d(this)/d(leaf) · gradient into every leaf's grad(). Without `gradient`, which then is 1,
  /// the tensor must have one element.
  void backward() const;
  void backward(const Tensor& gradient) const;
  /// A tensor that shares the data but has no autograd history.
  Tensor detach() const;
  /// Registers a hook that backward calls with this tensor's complete gradient; a defined return value
  /// replaces the gradient. The hook must not modify its argument, which may be shared, nor run backward
  /// through the same graph. A hook registered during a pass takes effect from the next one.
  ///
  /// A hook that captures its own tensor is a reference cycle. On a result, backward breaks it by freeing the
  /// graph together with its hooks; on a leaf, or if backward never runs, it leaks. Capture detach() instead.
  void register_hook(std::function<Tensor(const Tensor&)> hook) const;
  /// Name of the op that produced the tensor; empty for a leaf.
  const char* op_name() const noexcept { return impl_ && impl_->node ? impl_->node->name : ""; }

  // --- copies and views (differentiable; documented with the ops in ops.h)
  Tensor clone() const;
  Tensor contiguous() const;
  Tensor to(DType dtype) const;
  Tensor reshape(const Shape& shape) const;
  Tensor flatten(std::int64_t start = 0, std::int64_t end = -1) const;
  Tensor permute(const Dims& dims) const;
  Tensor transpose(std::int64_t dim0, std::int64_t dim1) const;
  Tensor t() const;  ///< the transpose of a matrix
  Tensor narrow(std::int64_t dim, std::int64_t start, std::int64_t length) const;
  Tensor slice(std::int64_t dim, std::int64_t start, std::int64_t end, std::int64_t step = 1) const;
  Tensor select(std::int64_t dim, std::int64_t index) const;
  Tensor expand(const Shape& shape) const;
  Tensor squeeze(std::int64_t dim) const;
  Tensor unsqueeze(std::int64_t dim) const;

  // --- in-place ops (not recorded; return *this). They throw on a result of a recorded op and, unless NoGrad
  // is active, on a leaf or a source that requires grad.
  Tensor& fill_(double value);
  Tensor& zero_();
  /// Copies the elements of `source`, of any dtype, broadcast to this shape.
  Tensor& copy_(const Tensor& source);
  Tensor& add_(const Tensor& other, double alpha = 1);  ///< this += alpha · other
  Tensor& mul_(double factor);

  // --- internal
  TensorImpl& impl() const {
    if (!impl_) undefined();
    return *impl_;
  }
  /// Internal; null for an undefined tensor.
  const Ref<TensorImpl>& ref() const noexcept { return impl_; }

 private:
  [[noreturn]] static void undefined();
  void check_type(DType requested) const {
    check(dtype() == requested, "data: the tensor is {}, not {}; use .to({})", name(dtype()), name(requested),
          name(requested));
  }
  void check_contiguous() const {
    check(is_contiguous(), "span: a view of shape {} with strides {} is not contiguous; use .contiguous()",
          shape(), strides());
  }

  Ref<TensorImpl> impl_;
};

// --- factories; the shape may be a braced list: zeros({2, 3})
Tensor empty(const Shape& shape, DType dtype = float32);  ///< uninitialised
Tensor zeros(const Shape& shape, DType dtype = float32);
Tensor ones(const Shape& shape, DType dtype = float32);
/// Filled with `value`; throws unless dtype can represent it.
Tensor full(const Shape& shape, double value, DType dtype = float32);
Tensor arange(std::int64_t n, DType dtype = int64);                 ///< 0, 1, …, n - 1
Tensor rand(const Shape& shape, Rng& rng, DType dtype = float32);   ///< uniform in [0, 1)
Tensor randn(const Shape& shape, Rng& rng, DType dtype = float32);  ///< normal, mean 0, standard deviation 1
Tensor empty_like(const Tensor& x);
Tensor zeros_like(const Tensor& x);
Tensor ones_like(const Tensor& x);

namespace detail {

/// A C++ element type: float, double, bool or an integer, which is stored as int64.
template <class T>
concept Element = std::same_as<T, float> || std::same_as<T, double> ||
    (std::integral<T> && !std::same_as<T, char>);
/// A contiguous range of elements: vector, array, span.
template <class R>
concept Elements = requires(const R& r) {
  std::span(r);
  requires Element<typename decltype(std::span(r))::value_type>;
};

/// An element of a braced list, whose elements may differ in type.
class Literal {
 public:
  template <Element T>
  Literal(T value) : real_(static_cast<double>(value)) {
    if constexpr (std::floating_point<T> || std::same_as<T, bool>) {
      dtype_ = dtype_of<T>;
      integer_ = std::same_as<T, bool> && value;
    } else {
      check(std::in_range<std::int64_t>(value), "tensor: {} is not representable as int64", value);
      integer_ = static_cast<std::int64_t>(value);
    }
  }

  DType dtype() const noexcept { return dtype_; }
  template <class T>
  T as() const noexcept {
    return std::integral<T> ? static_cast<T>(integer_) : static_cast<T>(real_);
  }

 private:
  double real_;
  std::int64_t integer_ = 0;
  DType dtype_ = int64;
};

/// A tensor with a copy of `elements`; T is the C++ type of a dtype.
template <class T>
[[gnu::visibility("default")]] Tensor tensor_of(std::span<const T> elements, const Shape& shape);
Tensor tensor_of(const std::vector<bool>& elements, const Shape& shape);

}  // namespace detail

/// A tensor of `shape` with a copy of `elements` in row-major order; throws unless their number matches the
/// shape. The dtype follows from the element types; a mixed list takes the widest of boolean, int64,
/// float32, float64: tensor({0.0, -INFINITY}) is float64, tensor({1, 2}) int64, tensor<float>({1}) float32.
Tensor tensor(std::initializer_list<detail::Literal> elements, const Shape& shape);
/// As above, from a contiguous range.
template <detail::Elements R>
Tensor tensor(const R& elements, const Shape& shape) {
  using T = typename decltype(std::span(elements))::value_type;
  if constexpr (std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, std::int64_t>) {
    std::vector<std::int64_t> wide;
    for (const T element : elements) wide.push_back(detail::Literal(element).template as<std::int64_t>());
    return detail::tensor_of(std::span<const std::int64_t>(wide), shape);
  } else {
    return detail::tensor_of(std::span<const T>(elements), shape);
  }
}
/// As above, from a std::vector<bool>.
template <std::same_as<bool> T>
Tensor tensor(const std::vector<T>& elements, const Shape& shape) {
  return detail::tensor_of(elements, shape);
}
/// As above, from a braced list of one type.
template <detail::Element T>
Tensor tensor(std::initializer_list<T> elements, const Shape& shape) {
  return tensor(std::span(elements.begin(), elements.size()), shape);
}
/// A one-dimensional tensor from a braced list of mixed types.
inline Tensor tensor(std::initializer_list<detail::Literal> elements) {
  return tensor(elements, Shape{static_cast<std::int64_t>(elements.size())});
}
/// As above, from a braced list of one type.
template <detail::Element T>
Tensor tensor(std::initializer_list<T> elements) {
  return tensor(elements, Shape{static_cast<std::int64_t>(elements.size())});
}
/// As above, from a contiguous range.
template <class R>
requires requires(const R& elements) { tensor(elements, Shape{}); }
Tensor tensor(const R& elements) {
  return tensor(elements, Shape{static_cast<std::int64_t>(std::size(elements))});
}
/// A zero-dimensional tensor.
Tensor scalar(double value, DType dtype = float32);

namespace detail {
/// A tensor on `storage`; `contiguous` is computed from shape and strides.
Tensor make_view(Ref<Storage> storage, DType dtype, const Shape& shape, const Strides& strides,
                 std::int64_t offset);
template <class T>
T* raw(const Tensor& t) noexcept {
  return reinterpret_cast<T*>(t.ref()->storage->data()) + t.ref()->offset;
}
}  // namespace detail

}  // namespace rill

#pragma GCC visibility pop
