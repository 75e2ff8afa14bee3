// The backward pass: which node runs when, and where gradients go.
#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <rill/core/autograd.h>
#include <rill/core/autograd/node_layout.h>
#include <rill/core/parallel.h>

namespace rill {

/// One run over a graph. A node runs after all its consumers: consumers are deeper, the deepest waiting one
/// goes first, equals in the order they were reached.
///
/// A pass owns the leaves that it reaches, until it ends, in the name of its thread's outermost pass (hooks
/// may run others within). The gradient of a leaf that another thread owns is postponed until the outermost
/// pass owns no leaf, so that threads do not wait for each other in a circle.
class Backward {
 public:
  explicit Backward(BackwardOptions options) noexcept : options_(options) {
    if (!outermost) outermost = this;
  }
  ~Backward() {
    if (outermost == this) outermost = nullptr;
  }
  Backward(const Backward&) = delete;

  void start(Edge& root, const Tensor& gradient);
  void deliver(Edge& edge, const Tensor& gradient);
  bool adopt(Edge& edge, Tensor& gradient);
  Slot slot(Edge& edge);
  Slot in_place_slot(Edge& edge, const Tensor& dy);
  Tensor zeroed(Edge& edge);
  void run();
  void abandon() noexcept;
  bool keeps_graph() const noexcept { return options_.keep; }

 private:
  struct Waiting {
    std::uint64_t depth;
    std::uint64_t order;
    Node* node;
    bool operator<(const Waiting& other) const noexcept {
      return depth != other.depth ? depth < other.depth : order > other.order;
    }
  };

  void enqueue(Node* node);
  static void hold(Edge& edge, bool edge_goes) noexcept;
  static void hold_reached(Node& node, bool edges_go) noexcept;
  bool claim(TensorImpl& leaf);
  Tensor& leaf_target(TensorImpl& leaf);
  Slot leaf_slot(const Edge& edge);
  static void clear_outputs(Node& node) noexcept;
  void run_node(Node& node);
  void check_finite(Node& node);
  void finish_leaves();
  void add_postponed();
  void disown() noexcept;

  static constinit thread_local Backward* outermost;

  BackwardOptions options_;
  std::vector<Waiting> heap_;
  std::vector<Ref<TensorImpl>> owned_;
  std::unordered_map<TensorImpl*, std::pair<Ref<TensorImpl>, Tensor>> postponed_;
  std::uint64_t reached_ = 0;
};

constinit thread_local Backward* Backward::outermost = nullptr;

/// A waiting node lives by the edge that it was reached through until hold() takes over.
void Backward::enqueue(Node* node) {
  if (node->queued) return;
  check(!node->released,
        "backward: the graph of '{}' was freed by an earlier backward; pass {{.keep = true}} there to run it "
        "again",
        node->name);
  heap_.push_back({node->depth, reached_++, node});
  node->queued = true;
  std::push_heap(heap_.begin(), heap_.end());
}

/// Keeps alive a waiting node reached through `edge`: with the edge's own reference where the edge goes now.
void Backward::hold(Edge& edge, bool edge_goes) noexcept {
  Node* node = edge.node.get();
  if (!node || !node->queued || node->owned) return;
  node->owned = true;
  if (edge_goes) {
    std::ignore = edge.node.let_go();
  } else {
    node->retain();
  }
}

/// After a node has run, or has failed to: the nodes it reached must not go with it.
void Backward::hold_reached(Node& node, bool edges_go) noexcept {
  for (int i = 0; i < node.inputs; ++i) hold(node.edges()[i], edges_go);
}

/// Makes this pass own a leaf; false when a pass of another thread does.
bool Backward::claim(TensorImpl& leaf) {
  Backward* owner = leaf.pass.load(std::memory_order_relaxed);
  if (owner == outermost) return true;
  if (owner) return false;
  owned_.push_back(Ref<TensorImpl>::share(&leaf));
  const bool claimed = leaf.pass.compare_exchange_strong(owner, outermost, std::memory_order_acquire);
  if (claimed)
    leaf.hooked = leaf.hooks != nullptr;
  else
    owned_.pop_back();
  return claimed;
}

/// The tensor that collects a leaf's gradient: grad(), or a buffer until hooks have seen it or another
/// thread's pass ends.
Tensor& Backward::leaf_target(TensorImpl& leaf) {
  if (!claim(leaf)) {
    auto& [kept, gradient] = outermost->postponed_[&leaf];
    kept = Ref<TensorImpl>::share(&leaf);
    return gradient;
  }
  static_assert(sizeof(Tensor) == sizeof(Ref<TensorImpl>));
  return leaf.hooked ? leaf.hooks->pending : reinterpret_cast<Tensor&>(leaf.grad);
}

void detail::check_not_converted(const char* name, const TensorImpl& owner, DType recorded) {
  check(owner.dtype == recorded,
        "{}: a leaf of shape {} was converted from {} to {} since; take the parameter from the module again "
        "and run forward again",
        name, owner.shape, rill::name(recorded), rill::name(owner.dtype));
}

Slot Backward::leaf_slot(const Edge& edge) {
  TensorImpl& leaf = *edge.leaf;
  TensorImpl& owner = leaf.base ? *leaf.base : leaf;
  detail::check_not_converted("backward", owner, edge.dtype);
  Tensor& target = leaf_target(owner);
  const bool fresh = !target.defined();
  const bool whole = leaf.numel == owner.numel;
  if (fresh) target = whole ? empty(owner.shape, owner.dtype) : zeros(owner.shape, owner.dtype);
  target.impl().storage->bump_version();
  const double beta = fresh && whole ? 0 : 1;
  if (!leaf.base) return {target, beta};
  return {detail::make_view(target.impl().storage, leaf.dtype, leaf.shape, leaf.strides,
                            target.impl().offset + leaf.offset - owner.offset),
          beta};
}

Slot Backward::slot(Edge& edge) {
  if (edge.leaf) return leaf_slot(edge);
  OutputSlot& out = edge.node->output_slots()[edge.output];
  if (!out.grad.defined()) {
    enqueue(edge.node.get());
    out.grad = empty(out.shape, out.dtype);
    return {out.grad, 0};
  }
  const bool shared = out.grad.impl().storage->use_count() > 1 || out.grad.ref()->use_count() > 1;
  if (shared || detail::repeats(out.grad)) out.grad = out.grad.clone();
  out.grad.impl().storage->bump_version();
  return {out.grad, 1};
}

namespace {
/// Whether a gradient is held by one handle alone, and is all of its storage.
bool held_once(const TensorImpl& t) noexcept {
  return t.use_count() == 1 && t.storage->use_count() == 1 &&
         t.storage->bytes() == static_cast<std::size_t>(t.numel) * item_size(t.dtype);
}
}  // namespace

Slot Backward::in_place_slot(Edge& edge, const Tensor& dy) {
  const TensorImpl& given = dy.impl();
  if (!edge.node || !given.contiguous || !held_once(given)) return slot(edge);
  OutputSlot& out = edge.node->output_slots()[edge.output];
  if (out.grad.defined() || out.shape != given.shape || out.dtype != given.dtype) return slot(edge);
  enqueue(edge.node.get());
  given.storage->bump_version();
  out.grad = dy;
  return {out.grad, 0};
}

Tensor Backward::zeroed(Edge& edge) {
  Slot s = slot(edge);
  if (s.beta == 0) s.to.zero_();
  return s.to;
}

void Backward::deliver(Edge& edge, const Tensor& gradient) {
  if (edge.node) {
    OutputSlot& out = edge.node->output_slots()[edge.output];
    if (!out.grad.defined()) {
      enqueue(edge.node.get());
      out.grad = gradient;
      return;
    }
  } else if (!edge.leaf->base) {
    detail::check_not_converted("backward", *edge.leaf, edge.dtype);
    Tensor& target = leaf_target(*edge.leaf);
    if (target.defined()) {
      target.add_(gradient);
      return;
    }
  }
  Slot s = slot(edge);
  if (s.beta == 0) {
    s.to.copy_(gradient);
  } else {
    s.to.add_(gradient);
  }
}

/// Delivers the gradient of a root, through an edge of the caller's that goes at once.
void Backward::start(Edge& root, const Tensor& gradient) {
  deliver(root, gradient);
  hold(root, true);
}

/// Makes a gradient that nobody else holds that of a leaf without one, if it has the leaf's layout.
bool Backward::adopt(Edge& edge, Tensor& gradient) {
  if (!edge.leaf) return false;
  TensorImpl& leaf = *edge.leaf;
  TensorImpl& owner = leaf.base ? *leaf.base : leaf;
  const TensorImpl& given = gradient.impl();
  const bool exclusive = held_once(given) && given.numel == owner.numel;
  const bool same_layout =
      leaf.base ? given.strides == leaf.strides && leaf.offset == owner.offset : given.contiguous;
  detail::check_not_converted("backward", owner, edge.dtype);
  if (!exclusive || !same_layout) return false;
  Tensor& target = leaf_target(owner);
  if (target.defined()) return false;
  target = leaf.base ? detail::make_view(given.storage, owner.dtype, owner.shape, owner.strides, 0)
                     : std::move(gradient);
  return true;
}

void Backward::check_finite(Node& node) {
  for (int i = 0; i < node.inputs; ++i) {
    Edge& edge = node.edges()[i];
    Tensor grad;
    if (edge.node) grad = edge.node->output_slots()[edge.output].grad;
    if (edge.leaf) {
      TensorImpl& leaf = edge.leaf->base ? *edge.leaf->base : *edge.leaf;
      if (leaf.pass.load(std::memory_order_relaxed)) grad = leaf_target(leaf);
    }
    if (!grad.defined()) continue;
    check(detail::all_finite(grad), "{}: the gradient of input {} of shape {} has a value that is not finite",
          node.name, i, grad.shape());
  }
}

void Backward::clear_outputs(Node& node) noexcept {
  for (int i = 0; i < node.outputs; ++i) node.output_slots()[i].grad = Tensor();
}

/// A backward function that failed may have used up what it kept, so its node cannot run again either.
void Backward::run_node(Node& node) {
  bool started = false;
  try {
    for (int i = 0; i < node.outputs; ++i) {
      OutputSlot& out = node.output_slots()[i];
      if (out.hooks && out.grad.defined()) out.grad = out.hooks->apply(out.grad);
    }
    started = true;
    Grads grads(node, this);
    node.run(node, grads);
    if (detail::thread_modes.anomaly) check_finite(node);
  } catch (...) {
    clear_outputs(node);
    hold_reached(node, false);
    if (started && !options_.keep) detail::release_node(node);
    throw;
  }
  clear_outputs(node);
  hold_reached(node, !options_.keep);
  if (!options_.keep) detail::release_node(node);
}

void Backward::run() {
  const NoGrad no_grad;
  const FlushDenormals flush;  // gradients through many steps vanish into them
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end());
    const Ref<Node> node = Ref<Node>::adopt(heap_.back().node);
    heap_.pop_back();
    node->queued = node->owned = false;
    run_node(*node);
  }
  finish_leaves();
  if (this == outermost) add_postponed();
}

/// Runs the hooks of the leaves that this pass owns, and gives the leaves up.
void Backward::finish_leaves() {
  for (const Ref<TensorImpl>& leaf : owned_) {
    if (!leaf->hooked) continue;
    const Tensor gradient = leaf->hooks->apply(std::exchange(leaf->hooks->pending, Tensor()));
    if (leaf->grad) {
      Tensor(leaf->grad).add_(gradient);
    } else {
      leaf->grad = gradient.clone().ref();
    }
  }
  disown();
}

/// Adds the gradients of leaves that passes of other threads owned. Hooks may postpone more.
void Backward::add_postponed() {
  while (!postponed_.empty()) {
    auto [leaf, gradient] = postponed_.extract(postponed_.begin()).mapped();
    if (!gradient.defined()) continue;
    while (!claim(*leaf)) {
      if (Backward* owner = leaf->pass.load(std::memory_order_relaxed)) leaf->pass.wait(owner);
    }
    Edge edge{nullptr, leaf, 0, leaf->dtype};
    if (!adopt(edge, gradient)) deliver(edge, gradient);
    finish_leaves();
  }
}

void Backward::disown() noexcept {
  for (const Ref<TensorImpl>& leaf : owned_) {
    leaf->hooked = false;
    leaf->pass.store(nullptr, std::memory_order_release);
    leaf->pass.notify_all();
  }
  owned_.clear();
}

void Backward::abandon() noexcept {
  for (const Ref<TensorImpl>& leaf : owned_) {
    leaf->grad = nullptr;
    if (leaf->hooks) leaf->hooks->pending = Tensor();
  }
  disown();
  for (const Waiting& waiting : heap_) {
    const Ref<Node> node = Ref<Node>::adopt(waiting.node);
    node->queued = node->owned = false;
    clear_outputs(*node);
  }
  heap_.clear();
}

// --- what a backward function sees

GradRef Grads::operator[](int i) const {
  check(i >= 0 && i < node_.inputs, "{}: the gradient of input {} was asked for, of {}", node_.name, i,
        node_.inputs);
  Edge& edge = node_.edges()[i];
  return GradRef(edge.node || edge.leaf ? &edge : nullptr, pass_);
}

bool Grads::keeps_graph() const noexcept { return pass_->keeps_graph(); }

Slot GradRef::slot() { return pass_->slot(*edge_); }
Slot GradRef::in_place_slot(const Tensor& dy) { return pass_->in_place_slot(*edge_, dy); }
Tensor GradRef::zeroed() { return pass_->zeroed(*edge_); }

const Shape& GradRef::shape() const {
  return edge_->leaf ? edge_->leaf->shape : edge_->node->output_slots()[edge_->output].shape;
}
DType GradRef::dtype() const { return edge_->dtype; }

namespace {
void check_given(const Tensor& gradient, const Shape& shape, DType dtype) {
  check(gradient.shape() == shape && gradient.dtype() == dtype,
        "backward: a gradient of {} {} was given for an input of {} {}", name(gradient.dtype()),
        gradient.shape(), name(dtype), shape);
  check(!gradient.impl().node, "backward: a gradient was recorded; gradients of gradients are not supported");
}
}  // namespace

void GradRef::give(const Tensor& gradient) {
  check_given(gradient, shape(), dtype());
  pass_->deliver(*edge_, gradient);
}

void GradRef::give(Tensor&& gradient) {
  check_given(gradient, shape(), dtype());
  if (!pass_->adopt(*edge_, gradient)) pass_->deliver(*edge_, gradient);
}

const Tensor& detail::only_gradient(Node& node) noexcept { return node.output_slots()->grad; }
namespace {
const OutputSlot& output_slot(Node& node, int i) {
  check(i >= 0 && i < node.outputs, "{}: the gradient of output {} was asked for, of {}", node.name, i,
        node.outputs);
  return node.output_slots()[i];
}
}  // namespace

bool Outputs::has(int i) const { return output_slot(node_, i).grad.defined(); }
Tensor Outputs::operator[](int i) const {
  const OutputSlot& out = output_slot(node_, i);
  return out.grad.defined() ? out.grad : zeros(out.shape, out.dtype);
}

// --- entry points

namespace {
Tensor root_gradient(const Tensor& root, const Tensor& given) {
  check(root.requires_grad(),
        "backward: the tensor of shape {} has no history; set_requires_grad() on a leaf before computing it, "
        "while recording (gradients themselves are not recorded: there are no gradients of gradients)",
        root.shape());
  if (!given.defined()) {
    check(root.numel() == 1,
          "backward: a tensor of shape {} needs a gradient of that shape; only one element has the default 1",
          root.shape());
    return ones(root.shape(), root.dtype());
  }
  check(given.shape() == root.shape() && given.dtype() == root.dtype(),
        "backward: the gradient is {} {}, the tensor {} {}", name(given.dtype()), given.shape(),
        name(root.dtype()), root.shape());
  return given.detach();
}
}  // namespace

void backward(std::span<const Tensor> roots, std::span<const Tensor> gradients, BackwardOptions options) {
  check(gradients.empty() || gradients.size() == roots.size(), "backward: {} tensors, but {} gradients",
        roots.size(), gradients.size());
  Backward pass(options);
  try {
    for (std::size_t i = 0; i < roots.size(); ++i) {
      const Tensor gradient = root_gradient(roots[i], gradients.empty() ? Tensor() : gradients[i]);
      const TensorImpl& root = roots[i].impl();
      Edge edge{root.node, root.node ? nullptr : roots[i].ref(), root.output, root.dtype};
      const NoGrad no_grad;
      pass.start(edge, gradient);
    }
    pass.run();
  } catch (...) {
    pass.abandon();
    throw;
  }
}

void backward(const Tensor& root, BackwardOptions options) { backward(std::span(&root, 1), {}, options); }
void Tensor::backward() const { rill::backward(*this); }
void Tensor::backward(const Tensor& gradient) const {
  rill::backward(std::span(this, 1), std::span(&gradient, 1));
}

}  // namespace rill
