// Leaves in a backward pass: ownership among threads, and hooks.
#include <rill/core/autograd/pass.h>

namespace rill {

constinit thread_local Backward* Backward::outermost = nullptr;

/// Claims a leaf for this pass; false if a pass of another thread owns it.
bool Backward::claim(TensorImpl& leaf) {
  Backward* owner = leaf.pass.load(std::memory_order_relaxed);
  if (owner == outermost) return true;
  if (owner) return false;
  owned_.push_back(Ref<TensorImpl>::share(&leaf));
  const bool claimed = leaf.pass.compare_exchange_strong(owner, outermost, std::memory_order_acquire);
  if (claimed)
    leaf.hooked = leaf.hooks && leaf.hooks->due(pass_);
  else
    owned_.pop_back();
  return claimed;
}

/// The tensor that accumulates a leaf's gradient: grad(), or a buffer if hooks or another thread's pass must
/// finish first.
Tensor& Backward::leaf_target(TensorImpl& leaf) {
  if (!claim(leaf)) {
    auto& [kept, gradient] = outermost->postponed_[&leaf];
    kept = Ref<TensorImpl>::share(&leaf);
    return gradient;
  }
  static_assert(sizeof(Tensor) == sizeof(Ref<TensorImpl>));
  return leaf.hooked ? leaf.hooks->pending : reinterpret_cast<Tensor&>(leaf.grad);
}

/// Throws if a leaf's dtype differs from the recorded one because Module::to was called in between.
void Backward::check_not_converted(const TensorImpl& leaf, DType recorded) {
  check(leaf.dtype == recorded,
        "backward: a leaf of shape {} was converted from {} to {} after forward; get the parameter from the "
        "module again and rerun forward",
        leaf.shape, name(recorded), name(leaf.dtype));
}

Slot Backward::leaf_slot(const Edge& edge) {
  TensorImpl& leaf = *edge.leaf;
  check_not_converted(leaf, edge.dtype);
  Tensor& target = leaf_target(leaf);
  const bool fresh = !target.defined();
  if (fresh) target = empty(leaf.shape, leaf.dtype);
  target.impl().storage->bump_version();
  return {target, fresh ? 0.0 : 1.0};
}

/// Runs the hooks of the leaves that this pass owns and disowns them.
void Backward::finish_leaves() {
  for (const Ref<TensorImpl>& leaf : owned_) {
    if (!leaf->hooked) continue;
    const Tensor gradient = leaf->hooks->apply(std::exchange(leaf->hooks->pending, Tensor()), pass_);
    if (leaf->grad) {
      Tensor(leaf->grad).add_(gradient);
    } else {
      leaf->grad = gradient.clone().ref();
    }
  }
  disown();
}

/// Adds the postponed gradients of leaves that other threads owned. Hooks may postpone more.
void Backward::add_postponed() {
  while (!postponed_.empty()) {
    auto [leaf, gradient] = postponed_.extract(postponed_.begin()).mapped();
    if (!gradient.defined()) continue;
    while (!claim(*leaf)) {
      if (Backward* owner = leaf->pass.load(std::memory_order_relaxed)) leaf->pass.wait(owner);
    }
    Edge edge{nullptr, leaf, 0, leaf->dtype};
    if (!adopt(edge, gradient)) accumulate(edge, gradient);
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
  for (const Queued& queued : heap_) {
    const Ref<Node> node = Ref<Node>::adopt(queued.node);
    node->queued = node->owned = false;
    clear_outputs(*node);
  }
  heap_.clear();
}

}  // namespace rill
