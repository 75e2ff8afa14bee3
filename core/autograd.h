/// Reverse-mode automatic differentiation: recording ops and running backward passes.
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
/// Thread safety: passes over disjoint graphs may run concurrently and may share leaves, in which their
/// gradients add up. The graphs must be disjoint down to the leaves, grad() of a leaf must not be read before
/// the pass has finished, and a backward function must not wait for passes that it starts on other threads.
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

/// Disables recording on this thread and in the chunks of its parallel_for until the end of the scope. May be
/// nested.
class NoGrad {
 public:
  NoGrad() noexcept;
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};

/// Whether ops are recorded on this thread now.
bool grad_enabled() noexcept;

/// Until the end of the scope, checks the results of every op on this thread and in the chunks of its
/// parallel_for for NaN, and the gradients from its backward function for NaN and infinity. The first one
/// found throws rill::Error naming the op. Infinite results are allowed: masked_fill(scores, mask, -infinity)
/// and log(0) have them.
class DetectAnomaly {
 public:
  DetectAnomaly() noexcept;
  ~DetectAnomaly();
  DetectAnomaly(const DetectAnomaly&) = delete;
  DetectAnomaly& operator=(const DetectAnomaly&) = delete;

 private:
  bool before_;
};

/// Calls `on_record` with the name of every op recorded on this thread until the end of the scope. Used to
/// check that every op has a test.
class RecordObserver {
 public:
  /// Starts observing; observers may be nested.
  explicit RecordObserver(std::function<void(const char*)> on_record);
  ~RecordObserver();
  RecordObserver(const RecordObserver&) = delete;
  RecordObserver& operator=(const RecordObserver&) = delete;

  void operator()(const char* name) const { on_record_(name); }  ///< calls on_record

 private:
  std::function<void(const char*)> on_record_;
  RecordObserver* before_;
};

/// A tensor saved for the backward function of `op`: storage, layout and version, but no history (so no
/// cycle). Throws for an undefined tensor.
class Saved {
 public:
  /// Saves t; `op` names the op in errors.
  explicit Saved(const Tensor& t, const char* op = "backward");
  /// The tensor; throws when its contents were changed in place since.
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

/// Destination of a gradient: `to` = beta · `to` + gradient, with beta 0 (the contents are garbage)
/// or 1.
struct Slot {
  Tensor to;        ///< of the input's shape, any strides
  double beta = 0;  ///< 0 or 1
};

class [[gnu::visibility("hidden")]] Backward;

/// The gradient of one input, requested by a backward function. False if it is not needed.
class GradRef {
 public:
  explicit operator bool() const noexcept { return edge_ != nullptr; }  ///< whether it is needed
  /// The buffer for the gradient, of the input's shape, possibly strided. It must be written completely
  /// before another gradient is requested, since one leaf may be several inputs.
  Slot slot();
  /// The buffer for an elementwise gradient. `dy` is the argument of the backward function, which must not
  /// read it for another input afterwards: `to` may be dy itself (with beta 0) if nothing else refers to it,
  /// so element i of dy must be read before element i is written.
  Slot in_place_slot(const Tensor& dy);
  /// Like slot(), but zero-filled if new; for scatters, which add.
  Tensor zeroed();
  /// Adds a tensor of the input's shape to the gradient. It is shared where possible and never modified.
  void give(const Tensor& gradient);
  /// The same for a tensor that nothing else refers to: a leaf without a gradient adopts it without copying.
  void give(Tensor&& gradient);
  const Shape& shape() const;
  DType dtype() const;

 private:
  friend class Grads;
  GradRef(Edge* edge, Backward* pass) noexcept : edge_(edge), pass_(pass) {}
  Edge* edge_;
  Backward* pass_;
};

/// The gradients of the outputs of an op that has several.
class Outputs {
 public:
  explicit Outputs(Node& node) noexcept : node_(node) {}  ///< of a node that runs
  bool has(int i) const;                                  ///< whether a gradient arrived
  /// The gradient of output i; zeros when none arrived. Throws unless the op has an output i.
  Tensor operator[](int i) const;

 private:
  Node& node_;
};

/// The gradients to be computed: d[i] belongs to input i of `record`.
class Grads {
 public:
  Grads(Node& node, Backward* pass) noexcept : node_(node), pass_(pass) {}  ///< of a node that runs
  /// The gradient of input i; throws unless the op has one.
  GradRef operator[](int i) const;
  /// The gradients that arrived, for ops with several outputs.
  Outputs outputs() const noexcept { return Outputs(node_); }
  /// Whether the graph may be run again. If not, a backward function may reuse the memory of what it saved.
  bool keeps_graph() const noexcept;

 private:
  Node& node_;
  Backward* pass_;
};

/// A reference to a tensor in a list of inputs; avoids a reference count.
struct TensorRef {
  TensorRef(const Tensor& t) noexcept : tensor(&t) {}  ///< of a tensor that lives longer
  const Tensor* tensor;                                ///< not owned
};

/// The inputs of an op: `{a, b}`, or a vector.
class Inputs {
 public:
  /// Refers to the list, which must live longer.
  Inputs(std::initializer_list<TensorRef> list) noexcept : list_(list.begin(), list.size()) {}
  Inputs(const std::vector<TensorRef>& list) noexcept : list_(list) {}
  std::size_t size() const noexcept { return list_.size(); }                           ///< of the list
  const Tensor& operator[](std::size_t i) const noexcept { return *list_[i].tensor; }  ///< input i

 private:
  std::span<const TensorRef> list_;
};

/// True if an op on these inputs must be recorded: recording is enabled and one of them requires a gradient.
/// Undefined tensors are allowed and ignored.
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
/// A node without a lambda, in the released state until attach().
Node* create_node(const char* name, Inputs inputs, std::span<const Tensor> outputs, std::size_t lambda_bytes,
                  void (*run)(Node&, Grads&), void (*drop)(Node&) noexcept);
/// The gradient of the one output of a node that runs.
const Tensor& only_gradient(Node& node) noexcept;
/// Makes `outputs` the results of a node whose lambda has been constructed.
void attach(Ref<Node> node, std::span<Tensor> outputs) noexcept;
void watch(const char* name, std::span<const Tensor> outputs);

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

/// Records y as the result of an op: if one of the inputs requires a gradient, stores `backward(const Tensor&
/// dy, Grads& d)`. y must be a new tensor created by the op; one that has a gradient is an error. `backward`
/// must not capture a recorded tensor: use Saved. dy may have any strides, even those of an expanded tensor.
/// Undefined inputs (an absent bias) are allowed and get no gradient. Returns y.
template <class F>
Tensor record(const char* name, Tensor y, Inputs inputs, F&& backward) {
  if (is_recording(inputs)) detail::build_node(name, std::span(&y, 1), inputs, std::forward<F>(backward));
  if (detail::thread_modes.watching()) [[unlikely]]
    detail::watch(name, std::span(&y, 1));
  return y;
}

/// Returns the result of an op that need not be recorded, for callers that tested is_recording to avoid
/// saving tensors.
inline Tensor unrecorded(const char* name, Tensor y) {
  if (detail::thread_modes.watching()) [[unlikely]]
    detail::watch(name, std::span(&y, 1));
  return y;
}

/// The same for an op with several results; `backward(Outputs dy, Grads& d)`.
template <std::size_t N, class F>
std::array<Tensor, N> record(const char* name, std::array<Tensor, N> ys, Inputs inputs, F&& backward) {
  if (is_recording(inputs))
    detail::build_node(name, std::span<Tensor>(ys), inputs, std::forward<F>(backward));
  if (detail::thread_modes.watching()) [[unlikely]]
    detail::watch(name, ys);
  return ys;
}

/// Options of backward.
struct BackwardOptions {
  bool keep = false;  ///< keep the graph, so that it can be run again
};

/// Accumulates Σ_k d(root_k)/d(leaf) · gradient_k into every leaf's grad(). An undefined gradient means 1 and
/// requires a root of one element. Not recursive; the order is determined by the graph, and denormals are
/// flushed to zero. If a hook or backward function throws, the leaves reached so far are left without a
/// gradient, and without `keep` the nodes that have run cannot run again. Throws if a root has no history or
/// was already run without `keep`.
void backward(std::span<const Tensor> roots, std::span<const Tensor> gradients, BackwardOptions options = {});
void backward(const Tensor& root, BackwardOptions options = {});

}  // namespace rill

#pragma GCC visibility pop
