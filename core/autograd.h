/// Reverse-mode automatic differentiation: recording of ops and the backward pass.
///
///   Tensor scale(const Tensor& x, double factor) {          // a custom op
///     Tensor y = …;                                         // the result, computed without recording
///     return record("scale", y, {x}, [factor](const Tensor& dy, Grads& d) {
///       if (auto dx = d[0]) dx.give(mul(dy, factor));
///     });
///   }
///
/// First order only: backward functions run without recording.
///
/// Thread safety: backward passes may run concurrently on graphs that share nothing but leaves; each pass
/// adds its whole gradient to a shared leaf. A pass must end before grad() of its leaves is read, and a
/// backward function must not wait for passes that it starts on other threads.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <new>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <rill/core/autograd/node.h>
#include <rill/core/memory.h>
#include <rill/core/parallel.h>
#include <rill/core/tensor.h>

#pragma GCC visibility push(default)

namespace rill {

/// RAII guard: disables recording on this thread and in the chunks of its parallel_for. May be nested.
class NoGrad {
 public:
  NoGrad() noexcept;
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool previous_;
};

/// Whether recording is enabled on this thread.
bool grad_enabled() noexcept;

/// RAII guard: on this thread and in the chunks of its parallel_for, checks the results of every op for NaN
/// and the gradients computed by its backward function for NaN and infinity. The first one found throws
/// rill::Error naming the op. Infinite results are allowed, as masked_fill(scores, mask, -infinity) or log(0)
/// produce them on purpose.
class DetectAnomaly {
 public:
  DetectAnomaly() noexcept;
  ~DetectAnomaly();
  DetectAnomaly(const DetectAnomaly&) = delete;
  DetectAnomaly& operator=(const DetectAnomaly&) = delete;

 private:
  bool previous_;
};

/// RAII guard: calls `on_record` with the name of every op recorded on this thread (used to check that each
/// op has a test).
class RecordObserver {
 public:
  /// Starts observing. Observers may be nested; the innermost one is called.
  explicit RecordObserver(std::function<void(const char*)> on_record);
  ~RecordObserver();
  RecordObserver(const RecordObserver&) = delete;
  RecordObserver& operator=(const RecordObserver&) = delete;

  void operator()(const char* name) const { on_record_(name); }  ///< calls on_record

 private:
  std::function<void(const char*)> on_record_;
  RecordObserver* previous_;
};

/// A tensor saved for a backward function: storage, layout and version, but no history, hence no reference
/// cycle.
class Saved {
 public:
  /// Saves t; `op` is named in errors. Throws if t is undefined.
  explicit Saved(const Tensor& t, const char* op = "backward");
  /// The tensor; throws if it was changed in place since it was saved.
  Tensor operator()() const {
    check_version();
    return detail::make_view(storage_, dtype_, shape_, strides_, offset_);
  }
  /// Pointer to the first element; throws likewise.
  template <class T>
  const T* data() const {
    check_version();
    return reinterpret_cast<const T*>(storage_->data()) + offset_;
  }
  const Shape& shape() const noexcept { return shape_; }  ///< of the tensor

 private:
  void check_version() const {
    if (storage_->version() != version_) stale();
  }
  [[noreturn]] void stale() const;

  Ref<Storage> storage_;
  std::int64_t offset_;
  Shape shape_;
  Strides strides_;
  std::uint32_t version_;
  DType dtype_;
  const char* op_;
};

/// Destination of a gradient: `to` = beta · `to` + gradient. With beta 0, `to` is uninitialised.
struct Slot {
  Tensor to;        ///< of the input's shape, any strides
  double beta = 0;  ///< 0 or 1
};

class [[gnu::visibility("hidden")]] Backward;

/// The gradient of one input, for use inside a backward function. False if it is not required.
class GradRef {
 public:
  explicit operator bool() const noexcept { return edge_ != nullptr; }  ///< whether it is required
  /// The buffer to write the gradient to: of the input's shape, possibly strided. It must be written in full
  /// before the next gradient is requested (a leaf may occur as several inputs).
  Slot slot();
  /// A slot for an elementwise gradient. `dy` is the argument of the backward function and must not be needed
  /// for another input afterwards: if nothing else references it, `to` is dy itself (with beta 0), so element
  /// i of dy must be read before element i of `to` is written.
  Slot in_place_slot(const Tensor& dy);
  /// slot().to, zero-filled if newly allocated. For scatter-add.
  Tensor zeroed();
  /// Adds `gradient`, of the input's shape and dtype, to the gradient. It is shared where possible and never
  /// modified.
  void give(const Tensor& gradient);
  /// The same, moving a tensor with no other reference into a leaf that has no gradient yet.
  void give(Tensor&& gradient);
  const Shape& shape() const;
  DType dtype() const;

 private:
  friend class Grads;
  GradRef(Edge* edge, Backward* pass) noexcept : edge_(edge), pass_(pass) {}
  Edge* edge_;
  Backward* pass_;
};

/// The incoming gradients of an op with several outputs.
class Outputs {
 public:
  explicit Outputs(Node& node) noexcept : node_(node) {}  ///< for a running node
  bool has(int i) const;                                  ///< whether output i received a gradient
  /// The gradient of output i, or zeros if it received none. Throws if i is out of range.
  Tensor operator[](int i) const;

 private:
  Node& node_;
};

/// The gradients to compute: d[i] is the gradient of input i of `record`.
class Grads {
 public:
  Grads(Node& node, Backward* pass) noexcept : node_(node), pass_(pass) {}  ///< for a running node
  /// The gradient of input i; throws if i is out of range.
  GradRef operator[](int i) const;
  /// The incoming gradients, for ops with several outputs.
  Outputs outputs() const noexcept { return Outputs(node_); }
  /// Whether the graph may run again; if not, a backward function may consume its saved state.
  bool retains_graph() const noexcept;

 private:
  Node& node_;
  Backward* pass_;
};

/// A reference to a tensor in a list of inputs, without touching the reference count.
struct TensorRef {
  TensorRef(const Tensor& t) noexcept : tensor(&t) {}  ///< t must outlive this
  const Tensor* tensor;                                ///< not owned
};

/// The inputs of an op: `{a, b}` or a vector.
class Inputs {
 public:
  /// Refers to `list`, which must outlive this.
  Inputs(std::initializer_list<TensorRef> list) noexcept : list_(list.begin(), list.size()) {}
  Inputs(const std::vector<TensorRef>& list) noexcept : list_(list) {}
  std::size_t size() const noexcept { return list_.size(); }                           ///< number of inputs
  const Tensor& operator[](std::size_t i) const noexcept { return *list_[i].tensor; }  ///< input i

 private:
  std::span<const TensorRef> list_;
};

/// Whether an op on these inputs must be recorded: recording is enabled and an input requires grad. Undefined
/// inputs are ignored.
inline bool is_recording(Inputs inputs) noexcept {
  if (!detail::thread_modes.recording) return false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].defined() && inputs[i].requires_grad()) return true;
  }
  return false;
}

namespace detail {

struct NodeLayout {
  std::size_t lambda_offset;
  std::size_t bytes;
};
/// A node in the released state; it becomes live when its lambda is constructed and attach() called.
Node* create_node(const char* name, Inputs inputs, std::span<const Tensor> outputs, std::size_t lambda_bytes,
                  void (*run)(Node&, Grads&), void (*drop)(Node&) noexcept);
/// The incoming gradient of a running node with one output.
const Tensor& only_gradient(Node& node) noexcept;
/// Connects the outputs to a node whose lambda is constructed.
void attach(Ref<Node> node, std::span<Tensor> outputs) noexcept;
/// Reports results to the observer and, for DetectAnomaly, checks those for NaN that are no views of inputs.
void watch(const char* name, std::span<const Tensor> outputs, Inputs inputs);

template <class F>
void build_node(const char* name, std::span<Tensor> outputs, Inputs inputs, F&& backward) {
  using Lambda = std::decay_t<F>;
  static_assert(alignof(Lambda) <= 16);
  static constexpr auto lambda_of = [](Node& n) { return static_cast<Lambda*>(n.lambda()); };
  Ref<Node> node = Ref<Node>::adopt(create_node(
      name, inputs, outputs, sizeof(Lambda),
      [](Node& n, Grads& d) {
        if constexpr (std::is_invocable_v<Lambda&, const Tensor&, Grads&>) {
          (*lambda_of(n))(only_gradient(n), d);
        } else {
          (*lambda_of(n))(d.outputs(), d);
        }
      },
      [](Node& n) noexcept { lambda_of(n)->~Lambda(); }));
  new (node->lambda()) Lambda(std::forward<F>(backward));
  attach(std::move(node), outputs);
}

}  // namespace detail

/// Records y as the result of an op and returns it. If an input requires grad, stores the function
/// `backward(const Tensor& dy, Grads& d)`. y must be a new tensor; one with history or requires_grad is an
/// error. `backward` must not capture a recorded tensor: use Saved. dy may have any strides, including those
/// of an expanded tensor. Inputs may be undefined (an absent bias); no gradient is required for them.
template <class F>
Tensor record(const char* name, Tensor y, Inputs inputs, F&& backward) {
  if (is_recording(inputs)) detail::build_node(name, std::span(&y, 1), inputs, std::forward<F>(backward));
  if (detail::thread_modes.watching()) [[unlikely]]
    detail::watch(name, std::span(&y, 1), inputs);
  return y;
}

/// The counterpart of `record` for a caller that has checked !is_recording() and saved nothing.
inline Tensor unrecorded(const char* name, Tensor y) {
  if (detail::thread_modes.watching()) [[unlikely]]
    detail::watch(name, std::span(&y, 1), {});
  return y;
}

/// `record` for an op with several results; `backward(Outputs dy, Grads& d)`.
template <std::size_t N, class F>
std::array<Tensor, N> record(const char* name, std::array<Tensor, N> ys, Inputs inputs, F&& backward) {
  if (is_recording(inputs))
    detail::build_node(name, std::span<Tensor>(ys), inputs, std::forward<F>(backward));
  if (detail::thread_modes.watching()) [[unlikely]]
    detail::watch(name, ys, inputs);
  return ys;
}

/// Options of backward.
struct BackwardOptions {
  bool retain_graph = false;  ///< keep the graph for another backward pass
};

/// Accumulates Σ_k d(root_k)/d(leaf) · gradient_k into every leaf's grad(). An undefined gradient means 1 and
/// requires a root of one element. Iterative, in an order determined by the graph; denormals are flushed to
/// zero. Throws if a root has no history or its graph was freed by an earlier pass without `retain_graph`. If
/// a hook or backward function throws, the leaves reached so far lose their gradient, and without
/// `retain_graph` the nodes that ran are freed.
void backward(std::span<const Tensor> roots, std::span<const Tensor> gradients, BackwardOptions options = {});
void backward(const Tensor& root, BackwardOptions options = {});

}  // namespace rill

#pragma GCC visibility pop
