/// A recurrent layer over a whole sequence as one op, for any unit.
///
/// Forward: the input products of all steps as one, then the steps. Backward: the steps in reverse order,
/// which overwrite the saved gates with their gradients, then one product for each weight. The batch is
/// partitioned into chunks once for all steps, so threads synchronize once per sequence and results are
/// bitwise the same for any number of threads.
#pragma once

#include <span>

#include <rill/nn/recurrent/unit.h>

namespace rill::nn::detail {

/// x [T, B, I], a layer's weights in each of D directions, the state [D, B, H] → output [T, B, D·H], last
/// state [D, B, H]. See recurrent_sequence.
RecurrentOutput sequence_op(const Unit& unit, const Tensor& x, std::span<const RecurrentWeights> directions,
                            const RecurrentInputs& given);

}  // namespace rill::nn::detail
