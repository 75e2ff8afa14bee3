// The gradients passed to a backward function.
#include <rill/core/autograd/pass.h>

namespace rill {

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

}  // namespace rill
