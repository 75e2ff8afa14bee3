/// A node of the autograd graph: one recorded op with its edges and backward function.
///
/// The node, its output slots, edges and backward lambda share one pooled block:
/// Node | OutputSlot[outputs] | Edge[inputs] | lambda. Internal; created by `record` (autograd.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include <rill/core/dtype.h>
#include <rill/core/memory/ref.h>
#include <rill/core/shape.h>

#pragma GCC visibility push(default)

namespace rill {

class Grads;
struct [[gnu::visibility("hidden")]] Hooks;
struct TensorImpl;
struct Edge;
struct OutputSlot;

struct Node : RefCounted {
  const char* name = "";
  void (*run)(Node&, Grads&) = nullptr;    ///< calls the backward lambda
  void (*drop)(Node&) noexcept = nullptr;  ///< destroys the lambda
  std::uint64_t depth = 0;                 ///< longest path to a leaf; consumers are deeper than producers
  std::uint32_t block_bytes = 0;
  std::uint32_t lambda_offset = 0;  ///< in bytes from `this`
  std::uint16_t inputs = 0;
  std::uint16_t outputs = 0;
  bool released = true;  ///< has no lambda or edges: not yet attached, or freed by backward
  bool running = false;  ///< its hooks or its backward function are executing
  bool queued = false;   ///< in the queue of a backward pass
  bool owned = false;    ///< the queue owns a reference to it

  OutputSlot* output_slots() noexcept;
  Edge* edges() noexcept;
  void* lambda() noexcept { return reinterpret_cast<std::byte*>(this) + lambda_offset; }

  /// Destroys a node and, without recursion, every node that only it kept alive.
  static void destroy(Node* node) noexcept;
};

}  // namespace rill

#pragma GCC visibility pop
