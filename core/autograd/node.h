/// One recorded op of the autograd graph: its edges and the function that computes their gradients.
///
/// A node, its output slots, its edges and the backward lambda lie in one pooled block: Node |
/// OutputSlot[outputs] | Edge[inputs] | lambda. Created by `record` (autograd.h).
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
  std::uint64_t depth = 0;                 ///< longest path to a leaf: consumers are deeper than producers
  std::uint32_t block_bytes = 0;
  std::uint32_t lambda_at = 0;  ///< in bytes from here
  std::uint16_t inputs = 0;
  std::uint16_t outputs = 0;
  bool released = true;  ///< without lambda: not yet built, or backward has run and dropped it and the edges
  bool running = false;  ///< its hooks or its backward function are being called
  bool queued = false;   ///< is queued in the running backward pass
  bool owned = false;    ///< that pass holds a reference to it

  OutputSlot* output_slots() noexcept;
  Edge* edges() noexcept;
  void* lambda() noexcept { return reinterpret_cast<std::byte*>(this) + lambda_at; }

  /// Destroys a node and, without recursion, every node that only it kept alive.
  static void destroy(Node* node) noexcept;
};

}  // namespace rill

#pragma GCC visibility pop
