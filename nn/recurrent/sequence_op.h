/// A recurrent layer over a whole sequence as one op, whatever its unit.
///
/// Forward: the input side of all steps as one product, then the steps. Backward: the steps in the opposite
/// order, which turn what was kept of the gates into their gradients in place, then one product for each
/// weight. The batch is cut into chunks once for all steps, so threads meet once a sequence and no bit
/// depends on their number.
#pragma once

#include <span>

#include <rill/nn/recurrent/unit.h>

namespace rill::nn::detail {

/// x [T, B, I], a layer's weights in each of D directions, the state [D, B, H] → output [T, B, D·H], last
/// state [D, B, H]. See recurrent_sequence.
RecurrentOutput sequence_op(const Unit& unit, const Tensor& x, std::span<const RecurrentWeights> directions,
                            const RecurrentInputs& given);

}  // namespace rill::nn::detail
