/// The tensor: a handle to a shape, strides and shared data, and optionally a node of the autograd graph.
///
/// Copying a Tensor copies the handle; `clone()` copies the data. Views (reshape, transpose, narrow, …) share
/// the data. The dtypes are float32, float64, int64 and boolean, without implicit promotion. Sizes of 0 are
/// allowed everywhere. The differentiable ops are free functions in ops.h; the methods here are access,
/// autograd state, views and in-place modification.
///
/// Thread safety: as for std::shared_ptr. Any number of threads may concurrently read the same elements
/// (const access, ops, new views) and copy or destroy their own handles. Writes need exclusive access: to the
/// storage, shared by all views, for mutable access and in-place ops; to the tensor for set_requires_grad,
/// set_grad, zero_grad and register_hook; to the handle for assignment. For backward passes see autograd.h.
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
/// The first element, unchecked: no dtype check, no version bump.
template <class T>
T* raw(const Tensor& t) noexcept;
}  // namespace detail

/// The object behind a Tensor. Internal: use Tensor.
struct TensorImpl : RefCounted {
  DType dtype = float32;
  bool requires_grad = false;  ///< a leaf that requires a gradient
  bool contiguous = true;
  bool hooked = false;       ///< hooks are pending for the gradient of the running backward pass
  std::uint32_t output = 0;  ///< which output of `node` this is
  std::int64_t numel = 0;
  std::int64_t offset = 0;  ///< in elements
  Shape shape;
  Strides strides;
  Ref<Storage> storage;
  Ref<Node> node;  ///< the op that made it, if recorded
  Ref<TensorImpl> grad;
  Hooks* hooks = nullptr;
  std::atomic<Backward*> pass{nullptr};  ///< of a leaf: the backward pass that currently owns `grad`

  static void destroy(TensorImpl* impl) noexcept;
};

/// A strided view of an array with n dimensions; a handle: copies share the data.
class Tensor {
 public:
  Tensor() = default;
  /// Internal.
  explicit Tensor(Ref<TensorImpl> impl) noexcept : impl_(std::move(impl)) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  ~Tensor() = default;
  /// Makes this handle refer to another tensor. For lvalues only: `x.select(0, 0) = y`, which would modify no
  /// element, does not compile; use x.select(0, 0).copy_(y).
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & noexcept = default;

  // --- layout; all but defined() throw for an undefined tensor
  bool defined() const noexcept { return static_cast<bool>(impl_); }
  DType dtype() const { return impl().dtype; }
  const Shape& shape() const { return impl().shape; }
  const Strides& strides() const { return impl().strides; }  ///< in elements
  int dim() const { return impl().shape.size(); }
  /// Size of dimension d, counted from the end when negative.
  std::int64_t size(std::int64_t d) const { return shape()[wrap_dim("size", d, dim())]; }
  std::int64_t stride(std::int64_t d) const { return strides()[wrap_dim("stride", d, dim())]; }
  std::int64_t numel() const { return impl().numel; }
  bool is_contiguous() const { return impl().contiguous; }  ///< dense and row-major

  // --- access
  /// The first element, read-only. T must be the C++ type of dtype().
  template <class T>
  const T* data() const {
    check_type(dtype_of<T>);
    return detail::raw<const T>(*this);
  }
  /// The first element, for writing. Each call counts as one modification of the storage, which all views
  /// share: it bumps the version, so that a backward pass rejects tensors saved before, and drops the cached
  /// packed form of a weight. Call it after the last op that used the tensor and finish writing before the
  /// next one does: writes through an older pointer are not detected.
  template <class T>
  T* mutable_data() {
    check_type(dtype_of<T>);
    impl().storage->bump_version();
    return detail::raw<T>(*this);
  }
  /// All elements in row-major order, read-only; throws if the tensor is not contiguous.
  template <class T>
  std::span<const T> span() const {
    check_contiguous();
    return {data<T>(), static_cast<std::size_t>(numel())};
  }
  /// The same for writing; each call counts as one modification, see mutable_data().
  template <class T>
  std::span<T> mutable_span() {
    check_contiguous();
    return {mutable_data<T>(), static_cast<std::size_t>(numel())};
  }
  /// The value of a tensor with one element, of any dtype, as T.
  template <class T = double>
  T item() const {
    check(numel() == 1, "item: a tensor of shape {} has {} elements; index it first", shape(), numel());
    return visit(dtype(), [&]<class U>(Type<U>) { return convert<T>(*data<U>()); });
  }
  /// The elements in row-major order, copied and converted to T.
  template <class T = double>
  std::vector<T> to_vector() const;

  // --- autograd
  /// True for a leaf marked by set_requires_grad and for every result computed from one.
  bool requires_grad() const { return impl().node || impl().requires_grad; }
  /// Marks a leaf, whose grad() backward() will fill. Throws unless the tensor is contiguous, of a floating
  /// dtype and not the result of a recorded op. Returns *this.
  Tensor& set_requires_grad(bool wanted = true);
  bool is_leaf() const { return !impl().node; }
  /// The accumulated gradient, contiguous; undefined before the first backward().
  Tensor grad() const;
  /// Sets the gradient to a copy of `grad`; throws unless its shape and dtype are this tensor's.
  void set_grad(const Tensor& grad);
  /// Drops the gradient.
  void zero_grad();
  /// Accumulates d(this)/d(leaf) into every leaf's grad(). Without a gradient the tensor must have one
  /// element.
  void backward() const;
  void backward(const Tensor& gradient) const;
  /// The same data outside the graph.
  Tensor detach() const;
  /// Calls `hook` with this tensor's whole gradient during backward; a defined result replaces the gradient.
  /// The hook must not modify its argument, which may be shared, nor run the graph that called it. A hook
  /// registered during a pass is first called in the next.
  ///
  /// A result drops its hooks when backward frees its graph, so a hook may capture its own tensor. Without a
  /// backward pass, or on a leaf, such a capture is a reference cycle and leaks: capture detach() instead,
  /// which shares only the data.
  void register_hook(std::function<Tensor(const Tensor&)> hook) const;
  const char* op_name() const noexcept { return impl_ && impl_->node ? impl_->node->name : ""; }

  // --- copies and views (recorded; documented with the ops in ops.h)
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

  // --- in place, never recorded; throw for a tensor with history and, while recording, for leaves and
  // sources that require a gradient
  Tensor& fill_(double value);
  Tensor& zero_();
  /// Takes the values of `source`, of any dtype, broadcast to this shape.
  Tensor& copy_(const Tensor& source);
  Tensor& add_(const Tensor& other, double alpha = 1);  ///< this += alpha · other
  Tensor& mul_(double factor);

  // --- internal
  TensorImpl& impl() const {
    if (!impl_) undefined();
    return *impl_;
  }
  /// Internal: null for an undefined tensor.
  const Ref<TensorImpl>& ref() const noexcept { return impl_; }

 private:
  [[noreturn]] static void undefined();
  void check_type(DType wanted) const {
    check(dtype() == wanted, "data: the tensor is {}, asked for as {}; use .to({})", name(dtype()),
          name(wanted), name(wanted));
  }
  void check_contiguous() const {
    check(is_contiguous(), "span: a view of shape {} with strides {} is not contiguous; use .contiguous()",
          shape(), strides());
  }

  Ref<TensorImpl> impl_;
};

/// Factory functions; the shape may be a braced list, e.g. zeros({2, 3}).
Tensor empty(const Shape& shape, DType dtype = float32);  ///< uninitialised
Tensor zeros(const Shape& shape, DType dtype = float32);
Tensor ones(const Shape& shape, DType dtype = float32);
Tensor full(const Shape& shape, double value, DType dtype = float32);  ///< throws for 0.5 as int64
Tensor arange(std::int64_t n, DType dtype = int64);                    ///< 0, 1, … n-1
Tensor rand(const Shape& shape, Rng& rng, DType dtype = float32);      ///< uniform in [0, 1)
Tensor randn(const Shape& shape, Rng& rng, DType dtype = float32);     ///< normal, mean 0, deviation 1
Tensor empty_like(const Tensor& x);
Tensor zeros_like(const Tensor& x);
Tensor ones_like(const Tensor& x);

namespace detail {

/// A C++ type of elements: float, double, bool or an integer, which becomes int64.
template <class T>
concept Element = std::same_as<T, float> || std::same_as<T, double> ||
    (std::integral<T> && !std::same_as<T, char>);
/// A vector, array, span or the like of elements.
template <class R>
concept Elements = requires(const R& r) {
  std::span(r);
  requires Element<typename decltype(std::span(r))::value_type>;
};

/// An element of a braced list, whose elements may have different types.
class Literal {
 public:
  template <Element T>
  Literal(T value) : real_(static_cast<double>(value)) {
    if constexpr (std::floating_point<T> || std::same_as<T, bool>) {
      dtype_ = dtype_of<T>;
      whole_ = std::same_as<T, bool> && value;
    } else {
      check(std::in_range<std::int64_t>(value), "tensor: {} is no value of int64", value);
      whole_ = static_cast<std::int64_t>(value);
    }
  }

  DType dtype() const noexcept { return dtype_; }
  template <class T>
  T as() const noexcept {
    return std::integral<T> ? static_cast<T>(whole_) : static_cast<T>(real_);
  }

 private:
  double real_;
  std::int64_t whole_ = 0;
  DType dtype_ = int64;
};

/// A tensor with a copy of the elements; T is the C++ type of its dtype.
template <class T>
[[gnu::visibility("default")]] Tensor tensor_of(std::span<const T> elements, const Shape& shape);
Tensor tensor_of(const std::vector<bool>& elements, const Shape& shape);

}  // namespace detail

/// A tensor of `shape` with a copy of the elements in row-major order; throws if their number does not match.
/// The dtype is that of the elements, or the widest of boolean, int64, float32 and float64 if they differ:
/// tensor({0.0, -INFINITY}) is float64, tensor({1, 2}) int64, tensor<float>({1, 2}) float32.
Tensor tensor(std::initializer_list<detail::Literal> elements, const Shape& shape);
/// From a range.
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
/// From booleans.
template <std::same_as<bool> T>
Tensor tensor(const std::vector<T>& elements, const Shape& shape) {
  return detail::tensor_of(elements, shape);
}
/// From elements of one type.
template <detail::Element T>
Tensor tensor(std::initializer_list<T> elements, const Shape& shape) {
  return tensor(std::span(elements.begin(), elements.size()), shape);
}
/// A tensor with one dimension.
inline Tensor tensor(std::initializer_list<detail::Literal> elements) {
  return tensor(elements, Shape{static_cast<std::int64_t>(elements.size())});
}
/// One dimension, from elements of one type.
template <detail::Element T>
Tensor tensor(std::initializer_list<T> elements) {
  return tensor(elements, Shape{static_cast<std::int64_t>(elements.size())});
}
/// One dimension, from a range.
template <class R>
requires requires(const R& elements) { tensor(elements, Shape{}); }
Tensor tensor(const R& elements) {
  return tensor(elements, Shape{static_cast<std::int64_t>(std::size(elements))});
}
/// A tensor without dimensions.
Tensor scalar(double value, DType dtype = float32);

namespace detail {
/// A tensor that refers to `storage`; `contiguous` follows from shape and strides.
Tensor make_view(Ref<Storage> storage, DType dtype, const Shape& shape, const Strides& strides,
                 std::int64_t offset);
template <class T>
T* raw(const Tensor& t) noexcept {
  return reinterpret_cast<T*>(t.ref()->storage->data()) + t.ref()->offset;
}
}  // namespace detail

}  // namespace rill

#pragma GCC visibility pop
